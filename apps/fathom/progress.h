// How far long work is, on stderr: a bar on a terminal, else a plain line now and then.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace fathom::app {

class Progress {
 public:
  // `total` 0: not known.  Prints nothing if `quiet`.
  Progress(std::string what, int64_t total, bool quiet);
  ~Progress();  // clears the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(int64_t done, int64_t tokens);

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  int64_t total_;
  bool quiet_;
  bool is_terminal_;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
};

}  // namespace fathom::app
