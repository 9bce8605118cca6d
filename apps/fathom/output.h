// Standard output and files, with every failure noticed.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "fathom/status.h"

namespace fathom::app {

// Writes all of `text` to standard output at once.  kCancelled with an empty message if the reader
// has closed it: there is nobody to tell, so the command ends quietly.
Status print(std::string_view text);
// Whether `status` is that.
bool is_closed_output(const Status& status);

// A file that gets its name when it is whole.  Until commit() it is NAME.part-PID; the destructor
// removes what was not committed.  "-" is standard output.
class OutputFile {
 public:
  static Result<OutputFile> create(const std::string& name);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  Status write(std::string_view text);
  Status commit();

 private:
  OutputFile(std::string name, std::string part_name, int fd)
      : name_(std::move(name)), part_name_(std::move(part_name)), fd_(fd) {}

  std::string name_;
  std::string part_name_;  // "": standard output
  int fd_;
};

// The whole of a text file that the user named; "-" is standard input.
Result<std::string> read_text(const std::string& name);

// Error, with the offset, if `text` is not UTF-8; `what` begins the message.
Status check_utf8(std::string_view text, std::string_view what);

}  // namespace fathom::app
