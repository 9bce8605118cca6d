// A blocking HTTP/1.1 client for tests: one connection, bytes as they are.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>

namespace fathom::harness {

class HttpClient {
 public:
  struct Reply {
    int status = 0;       // 0: the connection ended before an answer
    std::string headers;  // names in lower case, as the server writes them
    std::string body;     // chunks put together
  };

  explicit HttpClient(uint16_t port, int receive_buffer_bytes = 0) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_buffer_bytes > 0) {
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof receive_buffer_bytes);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient() { close(); }

  bool connected() const { return connected_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  // More bytes; false at the end of the connection or after the time.
  bool receive(int timeout_ms = 5000) {
    pollfd poll_fd{fd_, POLLIN, 0};
    if (poll(&poll_fd, 1, timeout_ms) <= 0) return false;
    char buffer[65536];
    const ssize_t n = recv(fd_, buffer, sizeof buffer, 0);
    if (n <= 0) return false;
    seen_.append(buffer, static_cast<size_t>(n));
    return true;
  }
  // Whether `text` comes; what came is seen().
  bool wait_for(std::string_view text, int timeout_ms = 5000) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    while (seen_.find(text) == seen_.npos) {
      if (std::chrono::steady_clock::now() > end || !receive(timeout_ms)) return false;
    }
    return true;
  }
  // The server ends the connection.
  bool wait_for_end(int timeout_ms = 5000) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    while (std::chrono::steady_clock::now() < end) {
      pollfd poll_fd{fd_, POLLIN, 0};
      if (poll(&poll_fd, 1, 20) > 0 && !receive(20)) return true;
    }
    return false;
  }
  std::string& seen() { return seen_; }

  static std::string request_text(std::string_view method, std::string_view path,
                                  std::string_view body = "", std::string_view headers = "") {
    std::string text = std::string(method) + " " + std::string(path) +
                       " HTTP/1.1\r\nHost: localhost\r\n" + std::string(headers);
    if (method == "POST") text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    return text + "\r\n" + std::string(body);
  }
  Reply ask(std::string_view method, std::string_view path, std::string_view body = "",
            std::string_view headers = "") {
    if (!send(request_text(method, path, body, headers))) return {};
    return read_reply(/*has_body=*/method != "HEAD");
  }
  Reply get(std::string_view path, std::string_view headers = "") {
    return ask("GET", path, "", headers);
  }
  Reply post(std::string_view path, std::string_view body, std::string_view headers = "") {
    return ask("POST", path, body, headers);
  }

  // The next answer on the connection; `timeout_ms` for its head.
  Reply read_reply(bool has_body = true, int timeout_ms = 5000) {
    Reply reply;
    if (!wait_for("\r\n\r\n", timeout_ms)) return reply;
    const size_t head = seen_.find("\r\n\r\n") + 4;
    reply.headers = seen_.substr(0, head);
    seen_.erase(0, head);
    reply.status = std::stoi(reply.headers.substr(9, 3));
    if (!has_body) return reply;
    const std::string length = header(reply.headers, "content-length");
    if (!length.empty()) {
      const size_t size = std::stoul(length);
      while (seen_.size() < size && receive()) {
      }
      reply.body = seen_.substr(0, size);
      seen_.erase(0, size);
    } else if (reply.headers.find("chunked") != std::string::npos) {
      read_chunks(&reply.body);
    }
    return reply;
  }
  static std::string header(const std::string& headers, const std::string& name) {
    const size_t at = headers.find("\r\n" + name + ": ");
    if (at == headers.npos) return "";
    const size_t begin = at + name.size() + 4;
    return headers.substr(begin, headers.find("\r\n", begin) - begin);
  }

 private:
  void read_chunks(std::string* body) {
    while (wait_for("\r\n")) {
      const size_t line = seen_.find("\r\n");
      const size_t size = std::stoul(seen_.substr(0, line), nullptr, 16);
      while (seen_.size() < line + 4 + size && receive()) {
      }
      *body += seen_.substr(line + 2, size);
      seen_.erase(0, line + 4 + size);
      if (size == 0) return;
    }
  }

  int fd_ = -1;
  bool connected_ = false;
  std::string seen_;
};

}  // namespace fathom::harness
