// The lines of a file or of standard input, one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fathom/status.h"

namespace fathom::app {

class LineSource {
 public:
  // "-" is standard input.
  static Result<LineSource> open(const std::string& name);
  LineSource(LineSource&& other) noexcept;
  LineSource& operator=(LineSource&&) = delete;
  ~LineSource();

  // The next line that is not blank, without its end; false at the end of the file.  kCancelled
  // after a signal; kInvalidArgument for a line of more than 256 MiB.
  Result<bool> next(std::string* line);
  // next() has something to read, or the end: it would not wait for whoever writes to a pipe.
  bool ready() const;
  int64_t line_number() const { return line_number_; }  // of the last line, from 1

 private:
  LineSource(std::string name, int fd) : name_(std::move(name)), fd_(fd) {}
  Result<bool> fill();

  std::string name_;
  int fd_;
  std::string buffer_;
  size_t begin_ = 0;
  bool at_end_ = false;
  int64_t line_number_ = 0;
};

// Lines of a regular file that are not blank; 0 if that cannot be known (standard input, a pipe).
int64_t count_lines(const std::string& name);

}  // namespace fathom::app
