// Status and Result<T>: how an operation that can fail says so.
//
// We do not throw.  A Status is an error code and a sentence for a person (what, where, what to
// do); a Result<T> is a T or a Status, with the member names of C++23's std::expected.  Both are
// [[nodiscard]].
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace fathom {

// Canonical codes.  The command line maps them to exit codes, the server to HTTP.
enum class StatusCode {
  kOk,
  kInvalidArgument,     // the caller asked for something that cannot be: wrong option, bad request
  kNotFound,            // a file, model, tensor or id does not exist
  kDataLoss,            // a file is truncated, damaged or not what its name says
  kFailedPrecondition,  // right request, wrong state: model type unknown, shapes do not fit
  kResourceExhausted,   // memory, disk, blocks, queue
  kUnimplemented,       // known, but not in this build
  kCancelled,
  kDeadlineExceeded,  // the caller's time limit is over
  kInternal,
};

std::string_view status_code_name(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;  // ok
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }
  // "WHERE: message"; an ok status stays as it is.
  Status with_context(std::string_view where) &&;
  // "not found: no such folder"
  std::string to_string() const;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status error) : error_(std::move(error)) {}

  bool has_value() const { return value_.has_value(); }
  explicit operator bool() const { return has_value(); }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return *std::move(value_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  const Status& error() const& { return error_; }
  Status&& error() && { return std::move(error_); }

 private:
  std::optional<T> value_;
  Status error_;
};

}  // namespace fathom

#define FATHOM_CONCAT_INNER(a, b) a##b
#define FATHOM_CONCAT(a, b) FATHOM_CONCAT_INNER(a, b)

// Returns the error of a Status expression from the enclosing function, if it is one.
#define FATHOM_TRY(expr)                                                                       \
  do {                                                                                         \
    if (::fathom::Status fathom_status_ = (expr); !fathom_status_.ok()) return fathom_status_; \
  } while (false)

// FATHOM_ASSIGN(auto x, make_x()): declares or assigns, or returns the error.
#define FATHOM_ASSIGN(lhs, expr) \
  FATHOM_ASSIGN_INNER(FATHOM_CONCAT(fathom_result_, __LINE__), lhs, expr)
#define FATHOM_ASSIGN_INNER(tmp, lhs, expr)            \
  auto tmp = (expr);                                   \
  if (!tmp.has_value()) return std::move(tmp).error(); \
  lhs = *std::move(tmp)
