#include "progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace fathom::app {

Progress::Progress(std::string what, int64_t total, bool quiet)
    : what_(std::move(what)),
      total_(total),
      quiet_(quiet),
      is_terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (shown_ && is_terminal_) std::fputs("\r\033[K", stderr);
}

void Progress::update(int64_t done, int64_t tokens) {
  if (quiet_) return;
  const auto now = Clock::now();
  const auto every = is_terminal_ ? std::chrono::milliseconds(100) : std::chrono::seconds(10);
  if (now - last_ < every) return;
  last_ = now;
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  std::string line = what_ + " ";
  if (total_ > 0 && is_terminal_) {
    constexpr int64_t kWidth = 24;
    const auto filled = static_cast<size_t>(std::min(kWidth, done * kWidth / total_));
    line += "[" + std::string(filled, '#') + std::string(kWidth - filled, '.') + "] ";
  }
  line += std::to_string(done);
  if (total_ > 0) line += "/" + std::to_string(total_);
  char rate[64];
  std::snprintf(rate, sizeof rate, "  %.0f tokens/s", static_cast<double>(tokens) / seconds);
  line += rate;
  if (total_ > 0 && done > 0) {
    std::snprintf(rate, sizeof rate, "  %.0f s left",
                  seconds / static_cast<double>(done) * static_cast<double>(total_ - done));
    line += rate;
  }
  std::fprintf(stderr, is_terminal_ ? "\r\033[K%s" : "%s\n", line.c_str());
}

}  // namespace fathom::app
