#include "fetch/url_fetcher.h"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "fetch/address.h"
#include "fetch/curl_library.h"
#include "fetch/url_parts.h"

namespace fathom::fetch {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = FetchError::Kind;

constexpr long kOkFirst = 200;
constexpr long kOkLast = 299;
constexpr long kRedirectFirst = 300;
constexpr long kRedirectLast = 399;
constexpr long kServerError = 500;

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// One fetch: its redirects and its attempts.
class Fetch {
 public:
  Fetch(const CurlLibrary& curl, const FetchPolicy& policy, size_t max_bytes,
        const std::function<bool()>& cancelled)
      : curl_(curl),
        policy_(policy),
        max_bytes_(max_bytes),
        cancelled_(cancelled),
        deadline_(Clock::now() + std::chrono::milliseconds(policy.total_timeout_ms)) {}

  FetchResult run(const std::string& url) {
    for (int attempt = 1;; ++attempt) {
      error_ = nullptr;
      follow(url);
      if (error_ == nullptr) return {std::move(body_), std::move(content_type_), nullptr};
      const auto delay = std::chrono::milliseconds(policy_.retry_delay_ms * attempt);
      const bool again = error_->retryable && attempt < policy_.max_attempts &&
                         Clock::now() + delay < deadline_ && !(cancelled_ && cancelled_());
      if (!again) return {"", "", std::move(error_)};
      std::this_thread::sleep_for(delay);
    }
  }

 private:
  void fail(Kind kind, std::string text, bool retryable = false) {
    if (error_ != nullptr) return;  // the first says why
    error_ = std::make_unique<FetchError>(FetchError{kind, retryable, std::move(text)});
  }

  void follow(std::string url) {
    bool was_secure = false;
    for (int hop = 0; hop <= policy_.max_redirects; ++hop) {
      if (!check_url(url, was_secure)) return;
      was_secure = url.size() > 5 && (url[4] == 's' || url[4] == 'S');
      std::optional<std::string> next = perform(url);
      if (!next) return;
      url = *std::move(next);
    }
    fail(Kind::kUnavailable, "more than " + std::to_string(policy_.max_redirects) + " redirects");
  }

  bool check_url(const std::string& url, bool was_secure) {
    const std::optional<UrlParts> parts = split_url(curl_, url);
    if (!parts || (parts->scheme != "http" && parts->scheme != "https")) {
      fail(Kind::kInvalidUrl, "not a URL of http or https");
      return false;
    }
    if (parts->has_user) {
      fail(Kind::kInvalidUrl, "a user name or password in the URL");
      return false;
    }
    const std::string port = std::to_string(parts->port);
    is_trusted_ = contains(policy_.trusted_hosts, parts->host) ||
                  contains(policy_.trusted_hosts, parts->host + ":" + port);
    const bool known_port =
        std::find(policy_.ports.begin(), policy_.ports.end(), parts->port) != policy_.ports.end();
    if (!is_trusted_ && !known_port) {
      fail(Kind::kInvalidUrl, "port " + port + " is not allowed");
      return false;
    }
    if (was_secure && parts->scheme == "http") {
      fail(Kind::kRefused, "a redirect from https to http");
      return false;
    }
    return true;
  }

  // One request.  The URL to go on with, or nullopt: done or failed.
  std::optional<std::string> perform(const std::string& url) {
    const std::unique_ptr<CURL, decltype(curl_.easy_cleanup)> handle(curl_.easy_init(),
                                                                     curl_.easy_cleanup);
    if (handle == nullptr) {
      fail(Kind::kUnavailable, "no memory", true);
      return std::nullopt;
    }
    const auto left_ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
    if (left_ms <= 0) {
      fail(Kind::kUnavailable, "no time is left");
      return std::nullopt;
    }
    handle_ = handle.get();
    body_.clear();
    content_type_.clear();
    header_bytes_ = 0;
    refused_ = false;
    set_options(url, left_ms);
    const CURLcode code = curl_.easy_perform(handle_);
    return take_answer(code);
  }

  template <class Value>
  void set(CURLoption option, Value value) {
    // Options are those of the header that this was built with; an old library may lack one.
    if (curl_.easy_setopt(handle_, option, value) != CURLE_OK) {
      fail(Kind::kNoLibrary, "libcurl is too old: option " + std::to_string(option));
    }
  }

  void set_options(const std::string& url, int64_t left_ms) {
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_PROXY, "");
    set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    set(CURLOPT_USERAGENT, "Fathom");
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT_MS,
        static_cast<long>(std::min(left_ms, policy_.connect_timeout_ms)));
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(left_ms));
    set(CURLOPT_BUFFERSIZE, 65536L);
    set(CURLOPT_OPENSOCKETFUNCTION, &Fetch::on_socket);
    set(CURLOPT_OPENSOCKETDATA, this);
    set(CURLOPT_HEADERFUNCTION, &Fetch::on_header);
    set(CURLOPT_HEADERDATA, this);
    set(CURLOPT_WRITEFUNCTION, &Fetch::on_body);
    set(CURLOPT_WRITEDATA, this);
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &Fetch::on_progress);
    set(CURLOPT_XFERINFODATA, this);
  }

  std::optional<std::string> take_answer(CURLcode code) {
    if (error_ != nullptr) return std::nullopt;
    if (code != CURLE_OK) {
      if (refused_) {
        fail(Kind::kRefused, "every address of the host is one that must not be fetched from");
      } else if (cancelled_ && cancelled_()) {
        fail(Kind::kUnavailable, "cancelled");
      } else {
        fail(Kind::kUnavailable, curl_.easy_strerror(code), code != CURLE_PEER_FAILED_VERIFICATION);
      }
      return std::nullopt;
    }
    const long status = status_code();
    if (status >= kRedirectFirst && status <= kRedirectLast) {
      const char* next = nullptr;
      curl_.easy_getinfo(handle_, CURLINFO_REDIRECT_URL, &next);
      if (next != nullptr) return std::string(next);
    }
    if (status < kOkFirst || status > kOkLast) {
      fail(Kind::kUnavailable, "status " + std::to_string(status), status >= kServerError);
    }
    return std::nullopt;
  }

  long status_code() const {
    long status = 0;
    curl_.easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &status);
    return status;
  }

  bool is_type_allowed() {
    const char* type = nullptr;
    curl_.easy_getinfo(handle_, CURLINFO_CONTENT_TYPE, &type);
    content_type_ = type != nullptr ? type : "";
    if (content_type_.empty()) return true;
    std::string name = content_type_.substr(0, content_type_.find(';'));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return std::any_of(policy_.content_types.begin(), policy_.content_types.end(),
                       [&name](const std::string& allowed) {
                         return allowed.back() == '/' ? name.rfind(allowed, 0) == 0
                                                      : name == allowed;
                       });
  }

  // Called with the address that will be connected to.
  static curl_socket_t on_socket(void* self, curlsocktype, curl_sockaddr* address) {
    auto* fetch = static_cast<Fetch*>(self);
    if (!fetch->is_trusted_ && !is_public_address(address->addr)) {
      fetch->refused_ = true;
      return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  }

  static size_t on_header(char*, size_t size, size_t count, void* self) {
    auto* fetch = static_cast<Fetch*>(self);
    fetch->header_bytes_ += size * count;
    if (fetch->header_bytes_ <= fetch->policy_.max_header_bytes) return size * count;
    fetch->fail(Kind::kUnavailable, "its headers are too long");
    return 0;
  }

  static size_t on_body(char* data, size_t size, size_t count, void* self) {
    auto* fetch = static_cast<Fetch*>(self);
    const size_t bytes = size * count;
    const long status = fetch->status_code();
    if (fetch->body_.empty() && status >= kOkFirst && status <= kOkLast) {
      if (!fetch->is_type_allowed()) {
        fetch->fail(Kind::kWrongType, "it is of type " + fetch->content_type_);
        return 0;
      }
      curl_off_t length = -1;
      fetch->curl_.easy_getinfo(fetch->handle_, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
      if (length > 0 && static_cast<uint64_t>(length) > fetch->max_bytes_)
        return fetch->too_large();
    }
    if (bytes > fetch->max_bytes_ - fetch->body_.size()) return fetch->too_large();
    fetch->body_.append(data, bytes);
    return bytes;
  }

  size_t too_large() {
    fail(Kind::kTooLarge, "more than " + std::to_string(max_bytes_) + " bytes");
    return 0;
  }

  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    auto* fetch = static_cast<Fetch*>(self);
    return fetch->cancelled_ && fetch->cancelled_() ? 1 : 0;
  }

  const CurlLibrary& curl_;
  const FetchPolicy& policy_;
  size_t max_bytes_;
  const std::function<bool()>& cancelled_;
  Clock::time_point deadline_;

  // Of the request that runs.
  CURL* handle_ = nullptr;
  bool is_trusted_ = false;
  bool refused_ = false;
  size_t header_bytes_ = 0;
  std::string body_;
  std::string content_type_;
  std::unique_ptr<FetchError> error_;
};

}  // namespace

FetchResult UrlFetcher::fetch(const std::string& url, size_t max_bytes,
                              const std::function<bool()>& cancelled) const {
  const CurlLibrary* curl = CurlLibrary::get();
  if (curl == nullptr) {
    return {"", "",
            std::make_unique<FetchError>(
                FetchError{Kind::kNoLibrary, false, "libcurl (libcurl.so.4) is not installed"})};
  }
  return Fetch(*curl, policy_, max_bytes, cancelled).run(url);
}

}  // namespace fathom::fetch
