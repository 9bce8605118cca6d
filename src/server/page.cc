#include "server/page.h"

namespace fathom::server {
namespace {

void show(const PageFile& file, Exchange& exchange) {
  // no-cache: a browser may keep a file, but asks whether it is still the one of this program.
  const net::HttpHeaders headers = {{"etag", std::string(file.etag)},
                                    {"cache-control", "no-cache"},
                                    {"content-security-policy", std::string(kPagePolicy)},
                                    {"referrer-policy", "no-referrer"}};
  if (exchange.request().header("if-none-match") == file.etag) {
    return exchange.reply(304, "", file.content_type, headers);
  }
  exchange.reply(200, std::string(file.bytes.begin(), file.bytes.end()), file.content_type,
                 headers);
}

}  // namespace

void add_page_routes(Router* router) {
  for (const PageFile& file : page_files()) {
    router->add({.method = "GET",
                 .path = std::string(file.path),
                 .handler = [&file](const std::shared_ptr<Exchange>& e) { show(file, *e); },
                 .open = true});
  }
}

}  // namespace fathom::server
