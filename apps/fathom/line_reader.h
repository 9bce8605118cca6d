// Lines that a person types: edited by libedit on a terminal, as they are from a pipe.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace fathom::app {

class LineReader {
 public:
  enum class Outcome {
    kLine,
    kEnd,        // ctrl-D, or the end of the input
    kInterrupt,  // ctrl-C with text on the line: the line is dropped
    kInterruptEmpty,
  };

  LineReader();
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  bool is_terminal() const;
  // Reads a line without its end; the prompt is shown on a terminal only.  Lines are remembered for
  // the arrow keys, in memory only.
  Outcome read(const std::string& prompt, std::string* line);

 private:
  struct Editor;
  Outcome read_plain(std::string* line);

  std::unique_ptr<Editor> editor_;  // null: not a terminal
  std::string buffer_;
};

}  // namespace fathom::app
