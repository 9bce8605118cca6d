#include "fetch/url_parts.h"

#include <charconv>
#include <memory>

namespace fathom::fetch {
namespace {

std::optional<std::string> part(const CurlLibrary& curl, CURLU* url, CURLUPart which,
                                unsigned flags) {
  char* text = nullptr;
  if (curl.url_get(url, which, &text, flags) != CURLUE_OK) return std::nullopt;
  std::string out(text);
  curl.free(text);
  return out;
}

std::string lowered(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

}  // namespace

std::optional<UrlParts> split_url(const CurlLibrary& curl, const std::string& url) {
  const std::unique_ptr<CURLU, decltype(curl.url_cleanup)> parsed(curl.url(), curl.url_cleanup);
  if (parsed == nullptr) return std::nullopt;
  // Schemes that libcurl does not know are refused here, too.
  if (curl.url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return std::nullopt;
  const auto scheme = part(curl, parsed.get(), CURLUPART_SCHEME, 0);
  const auto host = part(curl, parsed.get(), CURLUPART_HOST, 0);
  const auto port = part(curl, parsed.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  if (!scheme || !host || host->empty() || !port) return std::nullopt;
  UrlParts parts{lowered(*scheme), lowered(*host), 0, false};
  std::from_chars(port->data(), port->data() + port->size(), parts.port);
  parts.has_user = part(curl, parsed.get(), CURLUPART_USER, 0).has_value() ||
                   part(curl, parsed.get(), CURLUPART_PASSWORD, 0).has_value();
  return parts;
}

}  // namespace fathom::fetch
