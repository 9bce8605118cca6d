#include "output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "codec/unicode_utf8.h"
#include "failure.h"
#include "interrupt.h"

namespace fathom::app {
namespace {

Status write_all(int fd, std::string_view text, const std::string& where) {
  while (!text.empty()) {
    const ssize_t done = write(fd, text.data(), text.size());
    if (done >= 0) {
      text.remove_prefix(static_cast<size_t>(done));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EPIPE) return Status(StatusCode::kCancelled, "");
    const StatusCode code = errno == ENOSPC || errno == EDQUOT || errno == EFBIG
                                ? StatusCode::kResourceExhausted
                                : StatusCode::kInternal;
    return Status(code, where + ": cannot write: " + std::strerror(errno));
  }
  return Status();
}

}  // namespace

Status print(std::string_view text) { return write_all(STDOUT_FILENO, text, "standard output"); }

bool is_closed_output(const Status& status) {
  return status.code() == StatusCode::kCancelled && status.message().empty();
}

Result<OutputFile> OutputFile::create(const std::string& name) {
  if (name == "-") return OutputFile(name, "", STDOUT_FILENO);
  struct stat info {};
  if (stat(name.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return wrong_use(name + ": is a folder; name a file to write");
    if (!S_ISREG(info.st_mode)) {  // /dev/null, a named pipe: nothing to rename onto
      const int fd = open(name.c_str(), O_WRONLY | O_CLOEXEC);
      if (fd < 0) return wrong_use(name + ": cannot write: " + std::strerror(errno));
      return OutputFile(name, "", fd);
    }
  }
  std::string part_name = name + ".part-" + std::to_string(getpid());
  const int fd = open(part_name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return wrong_use(name + ": cannot write: " + std::strerror(errno));
  return OutputFile(name, std::move(part_name), fd);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : name_(std::move(other.name_)),
      part_name_(std::exchange(other.part_name_, "")),
      fd_(std::exchange(other.fd_, -1)) {}

OutputFile::~OutputFile() {
  if (fd_ > STDERR_FILENO) close(fd_);
  if (!part_name_.empty()) unlink(part_name_.c_str());
}

Status OutputFile::write(std::string_view text) {
  return write_all(fd_, text, name_ == "-" ? "standard output" : name_);
}

Status OutputFile::commit() {
  if (part_name_.empty()) return Status();
  if (close(std::exchange(fd_, -1)) != 0 || rename(part_name_.c_str(), name_.c_str()) != 0) {
    return Status(StatusCode::kInternal, name_ + ": cannot write: " + std::strerror(errno));
  }
  part_name_.clear();
  return Status();
}

Result<std::string> read_text(const std::string& name) {
  const std::string where = name == "-" ? "standard input" : name;
  const int fd = name == "-" ? STDIN_FILENO : open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return wrong_use(where + ": cannot read: " + std::strerror(errno));
  std::string text;
  char buffer[1 << 16];
  Status status;
  while (true) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got > 0) {
      text.append(buffer, static_cast<size_t>(got));
    } else if (got == 0) {
      break;
    } else if (errno != EINTR) {
      status = wrong_use(where + ": cannot read: " + std::strerror(errno));
      break;
    } else if (interrupted()) {
      status = Status(StatusCode::kCancelled, "interrupted");
      break;
    }
  }
  if (fd != STDIN_FILENO) close(fd);
  if (!status.ok()) return status;
  return text;
}

Status check_utf8(std::string_view text, std::string_view what) {
  const size_t valid = codec::valid_utf8_prefix(text);
  if (valid == text.size()) return Status();
  return wrong_use(std::string(what) + " is not UTF-8 (byte " + std::to_string(valid) +
                   "); convert it to UTF-8 first");
}

}  // namespace fathom::app
