#include "net/http_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "harness/http_client.h"

namespace fathom::net {
namespace {

using harness::HttpClient;
using Clock = std::chrono::steady_clock;

// Answers with the path; /hold waits for the test.
class EchoHandler : public HttpHandler {
 public:
  std::optional<HttpResponse> check_head(const HttpRequest& head) override {
    if (head.path == "/secret") return HttpResponse{.status = 401};
    return std::nullopt;
  }
  HttpResponse error(int status, const std::string& message, const HttpRequest& seen) override {
    return {.status = status,
            .body = message + " from " + seen.peer + " for " + seen.method + " " + seen.path};
  }
  void handle(HttpRequest request, std::shared_ptr<Responder> responder) override {
    ++num_handled;
    if (request.path == "/drop") return;
    if (request.path == "/hold") {
      const std::lock_guard lock(mutex_);
      held_.push_back(std::move(responder));
      return;
    }
    responder->send({.body = request.path + request.body});
  }
  std::shared_ptr<Responder> wait_for_held() {
    for (int i = 0; i < 500; ++i) {
      {
        const std::lock_guard lock(mutex_);
        if (!held_.empty()) {
          auto first = held_.front();
          held_.erase(held_.begin());
          return first;
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return nullptr;
  }
  std::atomic<int> num_handled{0};

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Responder>> held_;
};

class HttpServerTest : public testing::Test {
 protected:
  HttpServerTest() { options_.port = 0; }
  void start() {
    auto server = HttpServer::listen(options_);
    ASSERT_TRUE(server.has_value()) << server.error().message();
    server_ = *std::move(server);
    server_->serve(handler_);
  }
  int64_t open_after_a_while(int64_t wanted) {
    for (int i = 0; i < 300 && server_->stats().open != wanted; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return server_->stats().open;
  }
  HttpServerOptions options_;
  EchoHandler handler_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersManyRequestsOnOneConnection) {
  start();
  HttpClient client(server_->port());
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(client.post("/" + std::to_string(i), "x").body, "/" + std::to_string(i) + "x");
  }
  // All at once.
  std::string all;
  for (int i = 0; i < 50; ++i) all += HttpClient::request_text("GET", "/p" + std::to_string(i));
  client.send(all);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(client.read_reply().body, "/p" + std::to_string(i));
  EXPECT_EQ(server_->stats().accepted, 1);
}

TEST_F(HttpServerTest, SpreadsConnectionsOverItsThreads) {
  options_.io_threads = 3;
  start();
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(std::make_unique<HttpClient>(server_->port()));
  for (auto& client : clients) EXPECT_EQ(client->get("/a").body, "/a");
  clients.clear();
  EXPECT_EQ(open_after_a_while(0), 0);
}

TEST_F(HttpServerTest, BigBodiesAndAnswersPass) {
  start();
  HttpClient client(server_->port());
  const std::string big(20 << 20, 'b');
  EXPECT_EQ(client.post("/", big).body.size(), big.size() + 1);
}

TEST_F(HttpServerTest, ClientsThatDribbleAreCutOff) {
  options_.head_timeout_ms = 300;
  options_.body_timeout_ms = 300;
  options_.idle_timeout_ms = 300;
  start();
  HttpClient silent(server_->port()), head(server_->port()), body(server_->port()),
      idle(server_->port());
  body.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
  EXPECT_EQ(idle.get("/a").status, 200);
  const auto begin = Clock::now();
  bool head_open = true, body_open = true;
  while ((head_open || body_open) && Clock::now() - begin < std::chrono::seconds(5)) {
    head_open = head_open && head.send("a") && !head.wait_for("408", 20);
    body_open = body_open && body.send("b") && !body.wait_for("408", 20);
  }
  // Who it was, and what it wanted as far as that was said.
  EXPECT_TRUE(head.wait_for("from 127.0.0.1 for")) << head.seen();
  EXPECT_TRUE(body.wait_for("from 127.0.0.1 for POST /")) << body.seen();
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(3));
  EXPECT_TRUE(silent.wait_for_end());
  EXPECT_TRUE(idle.wait_for_end());
  EXPECT_EQ(open_after_a_while(0), 0);
}

TEST_F(HttpServerTest, TooManyConnectionsAreToldToComeLater) {
  options_.max_connections = 10;
  start();
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server_->port()));
    EXPECT_EQ(clients.back()->get("/a").status, 200);
  }
  HttpClient late(server_->port());
  EXPECT_TRUE(late.wait_for("503 Service Unavailable"));
  EXPECT_EQ(server_->stats().refused, 1);
  clients.pop_back();
  EXPECT_EQ(open_after_a_while(9), 9);
  EXPECT_EQ(HttpClient(server_->port()).get("/b").status, 200);
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kComeAndGo = 5'000;
#else
constexpr int kComeAndGo = 100'000;
#endif

// A connection that says `bytes` and ends by a reset: an end that waits (TIME_WAIT) would use up
// the ports.
bool come_and_go(uint16_t port, std::string_view bytes) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const linger now{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  const bool good = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                    send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) >= 0;
  close(fd);
  return good;
}

TEST_F(HttpServerTest, AHundredThousandConnectionsComeAndGo) {
  start();
  const std::string_view parts[] = {"", "GET / HTTP/1.1\r\nHo", "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                    "\x16\x03\x01\r\n\r\n"};
  for (int i = 0; i < kComeAndGo; ++i) {
    ASSERT_TRUE(come_and_go(server_->port(), parts[i % 4])) << i;
  }
  EXPECT_GE(server_->stats().accepted, kComeAndGo - 4096);  // some may still wait to be accepted
  EXPECT_EQ(HttpClient(server_->port()).get("/still").body, "/still");
  EXPECT_EQ(open_after_a_while(0), 0);
}

TEST_F(HttpServerTest, AnAnswerOutlivesARefusedBody) {
  start();
  HttpClient client(server_->port());
  client.send("POST /secret HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n");
  client.send(std::string(3 << 20, 'x'));  // on its way while the answer is
  EXPECT_TRUE(client.wait_for("401 Unauthorized"));
  EXPECT_TRUE(client.wait_for_end());
}

TEST_F(HttpServerTest, MemoryOfRequestsIsBounded) {
  options_.max_request_bytes = 1 << 20;
  start();
  HttpClient a(server_->port()), b(server_->port());
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n";
  a.send(head + std::string(800'000, 'x'));
  b.send(head + std::string(800'000, 'x'));
  // Neither is whole, so both are held until one of them has to go; the other one is answered.
  HttpClient* left = nullptr;
  for (int i = 0; i < 100 && left == nullptr; ++i) {
    if (a.wait_for_end(20)) {
      left = &b;
    } else if (b.wait_for_end(20)) {
      left = &a;
    }
  }
  ASSERT_NE(left, nullptr);
  EXPECT_FALSE(left->wait_for_end(50));
  left->send(std::string(100'000, 'x'));
  EXPECT_TRUE(left->wait_for("200 OK"));
}

TEST_F(HttpServerTest, MemoryOfAnswersThatNobodyReadsIsBounded) {
  options_.max_answer_bytes = 12 << 20;
  start();
  const std::string big(24 << 20, 'b');
  std::vector<std::unique_ptr<HttpClient>> idle;
  for (int i = 0; i < 4; ++i) {
    idle.push_back(std::make_unique<HttpClient>(server_->port(), /*receive_buffer_bytes=*/4096));
    idle.back()->send(HttpClient::request_text("POST", "/", big));
  }
  for (int i = 0; i < 500 && server_->stats().slow_readers < 4; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  // Each holds more than the system takes over; who reads what it asked for is not concerned.
  EXPECT_EQ(server_->stats().slow_readers, 4);
  EXPECT_EQ(HttpClient(server_->port()).post("/small", "x").body, "/smallx");
  EXPECT_EQ(open_after_a_while(0), 0);
}

// Also what comes after a client has stopped to read.
TEST_F(HttpServerTest, MemoryOfStreamsThatNobodyReadsIsBounded) {
  options_.max_answer_bytes = 12 << 20;
  options_.max_unsent_bytes = 64 << 20;
  start();
  std::vector<std::unique_ptr<HttpClient>> idle;
  std::vector<std::shared_ptr<Responder>> responders;
  for (int i = 0; i < 4; ++i) {
    idle.push_back(std::make_unique<HttpClient>(server_->port(), /*receive_buffer_bytes=*/4096));
    idle.back()->send(HttpClient::request_text("GET", "/hold"));
    responders.push_back(handler_.wait_for_held());
    ASSERT_TRUE(responders.back());
    responders.back()->begin_stream({});
  }
  for (int piece = 0; piece < 256; ++piece) {
    for (auto& responder : responders) responder->write(std::string(64 << 10, 's'));
  }
  for (int i = 0; i < 500 && server_->stats().slow_readers == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_GE(server_->stats().slow_readers, 1);
  EXPECT_EQ(HttpClient(server_->port()).post("/small", "x").body, "/smallx");
}

TEST_F(HttpServerTest, TheHandlerHearsOfTheEndOfAConnection) {
  start();
  auto client = std::make_unique<HttpClient>(server_->port());
  client->send(HttpClient::request_text("GET", "/hold"));
  auto responder = handler_.wait_for_held();
  ASSERT_TRUE(responder);
  std::atomic<int> ends{0};
  responder->on_close([&] { ++ends; });
  responder->begin_stream({});
  responder->write("one");
  ASSERT_TRUE(client->wait_for("one"));
  EXPECT_FALSE(responder->closed());
  client.reset();
  for (int i = 0; i < 200 && ends == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(ends, 1);
  EXPECT_TRUE(responder->closed());
  responder->write("two");  // goes nowhere
  responder->end();
}

TEST_F(HttpServerTest, AStreamThatIsDroppedIsNotWhole) {
  start();
  HttpClient client(server_->port());
  client.send(HttpClient::request_text("GET", "/hold"));
  auto responder = handler_.wait_for_held();
  responder->begin_stream({});
  responder->write("one");
  responder.reset();
  EXPECT_TRUE(client.wait_for_end());
  EXPECT_NE(client.seen().find("one"), std::string::npos);
  EXPECT_EQ(client.seen().find("0\r\n\r\n"), std::string::npos);
  EXPECT_EQ(HttpClient(server_->port()).get("/drop").status, 500);
}

TEST_F(HttpServerTest, WritersOfOtherThreadsKeepTheirOrder) {
  start();
  HttpClient client(server_->port());
  client.send(HttpClient::request_text("GET", "/hold"));
  auto responder = handler_.wait_for_held();
  std::string wanted;
  std::thread writer([&] {
    responder->begin_stream({});
    for (int i = 0; i < 5000; ++i) {
      const std::string text = std::to_string(i) + ",";
      wanted += text;
      responder->write(text);
    }
    responder->end();
  });
  writer.join();
  EXPECT_EQ(client.read_reply().body, wanted);
}

TEST_F(HttpServerTest, TheClientOfWhatIsNoRequestIsKnown) {
  options_.limits.max_body_bytes = 10;
  start();
  HttpClient garbage(server_->port()), long_body(server_->port());
  garbage.send("no HTTP\r\n\r\n");
  EXPECT_TRUE(garbage.wait_for("from 127.0.0.1 for")) << garbage.seen();
  long_body.send("POST /long HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n" +
                 std::string(20, 'x') + "\r\n");
  EXPECT_TRUE(long_body.wait_for("413")) << long_body.seen();
  EXPECT_TRUE(long_body.wait_for("from 127.0.0.1 for POST /long")) << long_body.seen();
}

TEST_F(HttpServerTest, TheirTurnComesWithServeForClientsThatCameBefore) {
  auto server = HttpServer::listen(options_);
  ASSERT_TRUE(server.has_value());
  HttpClient early(server.value()->port());
  EXPECT_TRUE(early.connected());
  early.send(HttpClient::request_text("GET", "/early"));
  EXPECT_FALSE(early.wait_for("200", 50));
  // The port is taken by now, not only once somebody serves.
  HttpServerOptions second = options_;
  second.port = server.value()->port();
  EXPECT_FALSE(HttpServer::listen(second).has_value());
  server_ = *std::move(server);
  server_->serve(handler_);
  EXPECT_EQ(early.read_reply().body, "/early");
  EXPECT_FALSE(HttpServer::listen(second).has_value());
}

TEST_F(HttpServerTest, APortThatNobodyServedIsFreeAgain) {
  auto server = HttpServer::listen(options_);
  ASSERT_TRUE(server.has_value());
  options_.port = server.value()->port();
  HttpClient waiting(options_.port);
  server->reset();
  EXPECT_TRUE(waiting.wait_for_end());
  EXPECT_TRUE(HttpServer::listen(options_).has_value());
}

TEST_F(HttpServerTest, SaysWhyItCannotListen) {
  start();
  HttpServerOptions second = options_;
  second.port = server_->port();
  auto taken = HttpServer::listen(second);
  ASSERT_FALSE(taken.has_value());
  EXPECT_EQ(taken.error().code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(taken.error().message().find("taken"), std::string::npos);
  second.host = "192.0.2.1";
  EXPECT_EQ(HttpServer::listen(second).error().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace fathom::net
