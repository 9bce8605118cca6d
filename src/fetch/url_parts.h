// The parts of a URL that the rules are about.
//
// Private to fetch.  Thread: any; a pure function.
#pragma once

#include <optional>
#include <string>

#include "fetch/curl_library.h"

namespace fathom::fetch {

struct UrlParts {
  std::string scheme;  // lower case
  std::string host;    // lower case, brackets of IPv6 included
  int port = 0;
  bool has_user = false;
};

// nullopt: libcurl cannot read it as an absolute URL.
std::optional<UrlParts> split_url(const CurlLibrary& curl, const std::string& url);

}  // namespace fathom::fetch
