// Errors as clients of the two APIs know them.
//
// Thread: any; pure functions.
#pragma once

#include <string>
#include <string_view>

#include "fathom/status.h"

namespace fathom::server {

enum class Dialect { kOpenAi, kAnthropic };

struct ApiError {
  int status = 400;  // HTTP
  std::string message;
  std::string code = {};   // OpenAI: "model_not_found"; "": that of the status
  std::string param = {};  // OpenAI: the field
  int retry_after_s = 0;   // > 0: the header Retry-After
};

// The error of an operation: kInvalidArgument 400, kNotFound 404, kResourceExhausted 429 (come back
// later), kCancelled 503 (shutting down), kUnimplemented 501, others 500.
ApiError api_error(const Status& status);

// {"error":{...}}, or {"type":"error","error":{...}} for Anthropic's clients.
std::string error_body(const ApiError& error, Dialect dialect, std::string_view request_id);

}  // namespace fathom::server
