#include "fathom/status.h"

namespace fathom {

std::string_view status_code_name(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kNotFound:
      return "not found";
    case StatusCode::kDataLoss:
      return "damaged data";
    case StatusCode::kFailedPrecondition:
      return "failed precondition";
    case StatusCode::kResourceExhausted:
      return "out of resources";
    case StatusCode::kUnimplemented:
      return "not supported";
    case StatusCode::kCancelled:
      return "cancelled";
    case StatusCode::kDeadlineExceeded:
      return "too late";
    case StatusCode::kInternal:
      return "internal error";
  }
  return "unknown";
}

Status Status::with_context(std::string_view where) && {
  if (!ok()) message_.insert(0, std::string(where) + ": ");
  return std::move(*this);
}

std::string Status::to_string() const {
  if (ok()) return "ok";
  return std::string(status_code_name(code_)) + ": " + message_;
}

}  // namespace fathom
