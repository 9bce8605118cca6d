#include "base/line_writer.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string_view>
#include <utility>

namespace fathom {
namespace {

constexpr int kPatienceMs = 500;

}  // namespace

LineWriter::LineWriter(int fd, size_t max_bytes, std::function<std::string(int64_t)> dropped)
    : fd_(fd), max_bytes_(max_bytes), dropped_(std::move(dropped)) {
  thread_ = std::thread([this] { loop(); });
}

LineWriter::~LineWriter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void LineWriter::write(std::string line) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() + line.size() + 1 > max_bytes_) {
      ++num_dropped_;
      return;
    }
    waiting_.append(line).push_back('\n');
  }
  wake_.notify_one();
}

void LineWriter::loop() {
  while (true) {
    std::string text;
    int64_t num_dropped = 0;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
      text.swap(waiting_);
      num_dropped = std::exchange(num_dropped_, 0);
      if (stop_ && text.empty()) return;
    }
    if (num_dropped > 0) text += dropped_(num_dropped) + "\n";
    write_all(text);
  }
}

// An error ends it: there is nowhere to report that a log cannot be written.
void LineWriter::write_all(std::string_view text) {
  while (!text.empty()) {
    pollfd ready{fd_, POLLOUT, 0};
    const int num_ready = poll(&ready, 1, kPatienceMs);
    if (num_ready == 0 && stopping()) return;  // nobody reads: the program must end all the same
    if (num_ready <= 0) continue;
    // A pipe that is ready has room for so much, so write() does not wait.
    const ssize_t written = ::write(fd_, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

bool LineWriter::stopping() {
  const std::lock_guard lock(mutex_);
  return stop_;
}

}  // namespace fathom
