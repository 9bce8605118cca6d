#include "failure.h"

#include <cstdio>

namespace fathom::app {

int exit_code(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return kExitDone;
    case StatusCode::kInvalidArgument:
      return kExitUsage;
    case StatusCode::kNotFound:
    case StatusCode::kDataLoss:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kUnimplemented:
      return kExitModel;
    case StatusCode::kResourceExhausted:
      return kExitNoRoom;
    case StatusCode::kCancelled:
      return kExitInterrupted;
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kInternal:
      return kExitFailed;
  }
  return kExitFailed;
}

void print_failure(std::string_view message) {
  std::string line = "fathom: ";
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    line += byte < 0x20 || byte == 0x7f ? ' ' : c;
  }
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

int finish(const Status& status) {
  if (!status.ok() && status.code() != StatusCode::kCancelled) print_failure(status.message());
  return exit_code(status.code());
}

Status wrong_use(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

}  // namespace fathom::app
