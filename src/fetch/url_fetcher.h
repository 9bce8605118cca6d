// Fetches what the URLs of clients point to, without becoming their hand in the operator's network
// (SSRF): only http and https, only public addresses.  The address that is checked is the one that
// is connected to: it is looked at when the socket is opened, for every attempt and every redirect,
// so a name that resolves otherwise a moment later changes nothing.  Proxies of the environment,
// cookies, passwords in URLs and compressed transfers are not used.
//
// Thread: any, one object for many threads; fetch() blocks up to total_timeout_ms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fathom/status.h"

namespace fathom::fetch {

struct FetchPolicy {
  // "HOST" or "HOST:PORT", as URLs write them: these may have any address and any port.  For a
  // store of the operator's own.
  std::vector<std::string> trusted_hosts;
  std::vector<int> ports = {80, 443};
  // Of the answer, without parameters; an answer that names none is taken.
  std::vector<std::string> content_types = {"image/", "application/octet-stream",
                                            "binary/octet-stream"};
  int max_redirects = 5;
  int max_attempts = 3;  // after failures of the network and answers of 500 and above
  int64_t retry_delay_ms = 200;
  int64_t connect_timeout_ms = 10'000;
  int64_t total_timeout_ms = 60'000;  // with redirects and attempts
  size_t max_header_bytes = 64 << 10;
};

struct FetchError {
  enum class Kind {
    kInvalidUrl,   // not http or https, a password in it, a port that is not allowed
    kRefused,      // an address that is not public
    kUnavailable,  // no connection, timeout, cut short, or a status other than 200-299
    kTooLarge,
    kWrongType,
    kNoLibrary,  // libcurl is not installed
  };
  Kind kind = Kind::kUnavailable;
  bool retryable = false;
  std::string text;  // for the operator: names addresses
};

struct FetchResult {
  std::string bytes;
  std::string content_type;
  std::unique_ptr<FetchError> error;  // null: done
};

class UrlFetcher {
 public:
  explicit UrlFetcher(FetchPolicy policy) : policy_(std::move(policy)) {}

  // `cancelled` is asked about once a second.
  FetchResult fetch(const std::string& url, size_t max_bytes,
                    const std::function<bool()>& cancelled = nullptr) const;

 private:
  FetchPolicy policy_;
};

}  // namespace fathom::fetch
