// Lines to a file descriptor from a thread of its own, so that nobody waits for a slow disk or
// pipe.
//
// Thread: any.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace fathom {

class LineWriter {
 public:
  // Borrows `fd`.  At most `max_bytes` wait; a line that does not fit is dropped.  When there is
  // room again `dropped` makes the line that says how many were.
  LineWriter(int fd, size_t max_bytes, std::function<std::string(int64_t count)> dropped);
  ~LineWriter();  // writes what waits, unless nobody takes it for half a second
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // `line` without its newline.  Never waits.
  void write(std::string line);

 private:
  void loop();
  void write_all(std::string_view text);
  bool stopping();

  const int fd_;
  const size_t max_bytes_;
  const std::function<std::string(int64_t)> dropped_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string waiting_;  // guarded by mutex_, as what follows
  int64_t num_dropped_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace fathom
