#include "line_source.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "failure.h"
#include "interrupt.h"

namespace fathom::app {
namespace {

constexpr size_t kMaxLineBytes = size_t{256} << 20;

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

Result<LineSource> LineSource::open(const std::string& name) {
  const std::string where = name == "-" ? "standard input" : name;
  const int fd = name == "-" ? STDIN_FILENO : ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return wrong_use(where + ": cannot read: " + std::strerror(errno));
  struct stat info {};
  if (fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
    if (fd != STDIN_FILENO) ::close(fd);
    return wrong_use(where + ": is a folder; name a file");
  }
  return LineSource(where, fd);
}

LineSource::LineSource(LineSource&& other) noexcept
    : name_(std::move(other.name_)),
      fd_(std::exchange(other.fd_, -1)),
      buffer_(std::move(other.buffer_)),
      begin_(other.begin_),
      at_end_(other.at_end_),
      line_number_(other.line_number_) {}

LineSource::~LineSource() {
  if (fd_ > STDIN_FILENO) close(fd_);
}

// Reads some more; false at the end.
Result<bool> LineSource::fill() {
  char chunk[1 << 16];
  while (true) {
    const ssize_t got = read(fd_, chunk, sizeof chunk);
    if (got > 0) {
      buffer_.append(chunk, static_cast<size_t>(got));
      return true;
    }
    if (got == 0) return false;
    if (errno != EINTR) return wrong_use(name_ + ": cannot read: " + std::strerror(errno));
    if (interrupted()) return Status(StatusCode::kCancelled, "interrupted");
  }
}

bool LineSource::ready() const {
  if (at_end_ || buffer_.find('\n', begin_) != std::string::npos) return true;
  pollfd waiting{fd_, POLLIN, 0};
  return poll(&waiting, 1, 0) != 0;
}

Result<bool> LineSource::next(std::string* line) {
  size_t searched = begin_;
  while (true) {
    const size_t end = buffer_.find('\n', searched);
    if (end == std::string::npos && !at_end_) {
      searched = buffer_.size();
      if (buffer_.size() - begin_ > kMaxLineBytes) {
        return wrong_use(name_ + ": line " + std::to_string(line_number_ + 1) +
                         " has more than 256 MiB; is this a JSONL file?");
      }
      if (begin_ > 0) {
        buffer_.erase(0, begin_);
        searched -= begin_;
        begin_ = 0;
      }
      FATHOM_ASSIGN(const bool more, fill());
      at_end_ = !more;
      continue;
    }
    if (end == std::string::npos && begin_ == buffer_.size()) return false;
    const size_t stop = end == std::string::npos ? buffer_.size() : end;
    line->assign(buffer_, begin_, stop - begin_);
    begin_ = std::min(stop + 1, buffer_.size());
    searched = begin_;
    ++line_number_;
    if (!is_blank(*line)) return true;
  }
}

int64_t count_lines(const std::string& name) {
  struct stat info {};
  if (name == "-" || stat(name.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return 0;
  Result<LineSource> source = LineSource::open(name);
  if (!source) return 0;
  std::string line;
  int64_t count = 0;
  while (true) {
    const Result<bool> more = source->next(&line);
    if (!more || !*more) return count;
    ++count;
  }
}

}  // namespace fathom::app
