#include "server/api_error.h"

#include "codec/json_text.h"
#include "codec/output/event_json.h"
#include "codec/unicode_utf8.h"

namespace fathom::server {
namespace {

struct Names {
  std::string_view openai_type;
  std::string_view openai_code;
  std::string_view anthropic_type;
};

// Messages name what was wrong with a request, which may be megabytes.
constexpr size_t kMaxMessage = 4000;

// Headers may have any bytes; JSON may not.
std::string presentable(std::string_view message) {
  std::string out(message.substr(0, kMaxMessage));
  const size_t valid = codec::valid_utf8_prefix(out);
  if (message.size() > kMaxMessage && out.size() - valid < 4)
    out.resize(valid);  // cut in a character
  if (codec::valid_utf8_prefix(out) == out.size()) return out;
  for (char& c : out) c = static_cast<unsigned char>(c) < 0x80 ? c : '?';
  return out;
}

Names names_of(int status) {
  switch (status) {
    case 401:
      return {"authentication_error", "invalid_api_key", "authentication_error"};
    case 403:
      return {"permission_error", "forbidden", "permission_error"};
    case 404:
      return {"not_found_error", "not_found", "not_found_error"};
    case 405:
      return {"invalid_request_error", "method_not_allowed", "invalid_request_error"};
    case 413:
      return {"invalid_request_error", "request_too_large", "request_too_large"};
    case 429:
      return {"rate_limit_error", "rate_limit_exceeded", "rate_limit_error"};
    case 501:
      return {"not_implemented_error", "not_implemented", "invalid_request_error"};
    case 503:
      return {"overloaded_error", "service_unavailable", "overloaded_error"};
    case 504:
      return {"timeout_error", "timeout", "timeout_error"};
    default:
      break;
  }
  if (status >= 500) return {"internal_error", "internal_error", "api_error"};
  return {"invalid_request_error", "invalid_request_error", "invalid_request_error"};
}

}  // namespace

ApiError api_error(const Status& status) {
  ApiError error;
  error.message = status.message();
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
      error.status = 400;
      break;
    case StatusCode::kNotFound:
      error.status = 404;
      break;
    case StatusCode::kResourceExhausted:
      error.status = 429;
      error.retry_after_s = 1;
      break;
    case StatusCode::kCancelled:
      error.status = 503;
      error.retry_after_s = 5;
      break;
    case StatusCode::kDeadlineExceeded:
      error.status = 504;
      break;
    case StatusCode::kUnimplemented:
      error.status = 501;
      break;
    default:
      error.status = 500;
      break;
  }
  return error;
}

std::string error_body(const ApiError& error, Dialect dialect, std::string_view request_id) {
  const Names names = names_of(error.status);
  const std::string message = presentable(error.message);
  std::string out;
  codec::JsonWriter json(&out);
  json.begin_object();
  if (dialect == Dialect::kAnthropic) {
    json.member("type", "error").key("error").begin_object();
    json.member("type", names.anthropic_type).member("message", message).end_object();
    json.member("request_id", request_id).end_object();
    return out;
  }
  json.key("error").begin_object().member("message", message);
  json.member("type", names.openai_type).key("param");
  error.param.empty() ? json.null() : json.string(presentable(error.param));
  json.member("code", error.code.empty() ? names.openai_code : std::string_view(error.code));
  json.end_object().end_object();
  return out;
}

}  // namespace fathom::server
