#include "net/http_connection.h"

#include <gtest/gtest.h>

#include <random>

namespace fathom::net {
namespace {

using namespace std::string_literals;

using Phase = HttpConnection::Phase;

class HttpConnectionTest : public testing::Test {
 protected:
  HttpConnectionTest() {
    rules_.check_head = [this](const HttpRequest& head) { return check_(head); };
    rules_.error = [](int status, const std::string& message, const HttpRequest&) {
      return HttpResponse{.status = status, .body = message};
    };
  }
  HttpConnection& connection() {
    if (!connection_) connection_.emplace(rules_);
    return *connection_;
  }
  // The request that the bytes make, if they do.
  std::optional<HttpRequest> request(std::string_view bytes) {
    connection().receive(bytes);
    return connection().take_request();
  }
  // The status of the answer that the connection gives by itself; 0 if it gives none.
  int refusal(std::string_view bytes) {
    connection_.emplace(rules_);
    connection_->receive(bytes);
    if (connection_->take_request()) return 0;
    const std::string out = connection_->output();
    if (!out.starts_with("HTTP/1.1 ")) return 0;
    EXPECT_EQ(connection_->phase(), Phase::kClosed) << bytes;
    return std::stoi(out.substr(9, 3));
  }
  std::string output() { return std::exchange(connection().output(), {}); }

  HttpConnection::Rules rules_;
  std::function<std::optional<HttpResponse>(const HttpRequest&)> check_ = [](const HttpRequest&) {
    return std::nullopt;
  };
  std::optional<HttpConnection> connection_;
};

constexpr std::string_view kGet = "GET /a?b=c HTTP/1.1\r\nHost: x\r\nX-One:  two \r\n\r\n";

TEST_F(HttpConnectionTest, ReadsARequestWhateverItsPieces) {
  const std::string post =
      "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
      "POST /q HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nTrailer: no\r\n\r\n";
  for (size_t step = 1; step <= post.size(); ++step) {
    connection_.emplace(rules_);
    std::vector<std::string> bodies;
    for (size_t at = 0; at < post.size(); at += step) {
      connection_->receive(std::string_view(post).substr(at, step));
      while (auto r = connection_->take_request()) {
        bodies.push_back(r->path + " " + r->body);
        EXPECT_EQ(r->header("trailer"), "");
        connection_->respond({});
      }
    }
    ASSERT_EQ(bodies, (std::vector<std::string>{"/p hello", "/q abcdefg"})) << step;
    EXPECT_EQ(connection_->phase(), Phase::kIdle);
  }
}

TEST_F(HttpConnectionTest, SplitsTargetAndHeaders) {
  const auto r = request(kGet);
  ASSERT_TRUE(r);
  EXPECT_EQ(r->method, "GET");
  EXPECT_EQ(r->path, "/a");
  EXPECT_EQ(r->query, "b=c");
  EXPECT_EQ(r->header("x-one"), "two");
  EXPECT_FALSE(request("GET http://x/abs HTTP/1.1\r\nHost: x\r\n\r\n").has_value());
  connection().respond({});
  const auto second = connection().take_request();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->path, "/abs");
}

// Two readers must not disagree about where a request ends.
TEST_F(HttpConnectionTest, RefusesWhatCouldSmuggleARequest) {
  const std::string post = "POST / HTTP/1.1\r\nHost: x\r\n";
  EXPECT_EQ(refusal(post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            400);
  EXPECT_EQ(refusal(post + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"),
            400);
  EXPECT_EQ(refusal(post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"), 400);
  EXPECT_EQ(refusal(post + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"), 400);
  EXPECT_EQ(refusal(post + "Content-Length: 5, 5\r\n\r\nhello"), 400);
  EXPECT_EQ(refusal(post + "Content-Length: +5\r\n\r\nhello"), 400);
  EXPECT_EQ(refusal(post + "Content-Length: 0x5\r\n\r\nhello"), 400);
  EXPECT_EQ(refusal(post + "Content-Length: -1\r\n\r\n"), 400);
  EXPECT_EQ(refusal(post + "Content-Length: 99999999999999999999\r\n\r\n"), 400);
  EXPECT_EQ(refusal(post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), 501);
  EXPECT_EQ(refusal(post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"), 501);
  EXPECT_EQ(refusal(post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
            400);
  EXPECT_EQ(refusal(post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(refusal(post + "X: a\r\n Transfer-Encoding: chunked\r\n\r\n"), 400);
  EXPECT_EQ(refusal("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET / HTTP/1.1\nHost: x\n\n"), 400);
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n"s), 400);
}

TEST_F(HttpConnectionTest, RefusesChunksThatAreNone) {
  const std::string post = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char* bad : {"z\r\n", "-1\r\n", "3\r\nabcX\r\n", "3\r\nabc0\r\n\r\n", "0x3\r\nabc\r\n",
                          "fffffffffffffffff\r\n", "\r\n\r\n"}) {
    // Some faults show only when the line after is there.
    EXPECT_EQ(refusal(post + bad + "\r\n\r\n\r\n\r\n"), 400) << bad;
  }
  EXPECT_EQ(refusal(post + "3;" + std::string(20'000, 'x')), 400);
}

TEST_F(HttpConnectionTest, RefusesWhatIsNoRequest) {
  for (const char* bad :
       {"\x16\x03\x01\x02\x01", "GET\r\n\r\n", "GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        " / HTTP/1.1\r\n\r\n", "GET nothing HTTP/1.1\r\nHost: x\r\n\r\n"}) {
    const int status = refusal(std::string(bad) + "\r\n\r\n");
    EXPECT_TRUE(status == 400 || status == 505) << bad << ' ' << status;
  }
}

TEST_F(HttpConnectionTest, HoldsToItsLimits) {
  rules_.limits.max_header_bytes = 1000;
  rules_.limits.max_target_bytes = 100;
  rules_.limits.max_headers = 10;
  rules_.limits.max_body_bytes = 50;
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(2000, 'a')), 431);
  // 1001 bytes, request line and all, in one piece.
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(969, 'a') + "\r\n\r\n"), 431);
  EXPECT_EQ(refusal("GET /" + std::string(2000, 'a')), 431);
  EXPECT_EQ(refusal("GET /" + std::string(200, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n"), 414);
  std::string many = "GET / HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 11; ++i) many += "A: b\r\n";
  EXPECT_EQ(refusal(many + "\r\n"), 431);
  EXPECT_EQ(refusal("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 51\r\n\r\n"), 413);
  const std::string chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(refusal(chunked + "33\r\n" + std::string(0x33, 'x')), 413);
  EXPECT_EQ(
      refusal(chunked + "20\r\n" + std::string(0x20, 'x') + "\r\n20\r\n" + std::string(0x20, 'x')),
      413);
  // Lines of chunks and trailers, whole in one piece.
  EXPECT_EQ(refusal(chunked + "1;" + std::string(1000, 'x') + "\r\na\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(refusal(chunked + "0\r\nA: " + std::string(1000, 'x') + "\r\n\r\n"), 400);
}

TEST_F(HttpConnectionTest, AnswersInOrderAndKeepsTheConnection) {
  connection().receive(std::string(kGet) + std::string(kGet));
  ASSERT_TRUE(connection().take_request());
  EXPECT_FALSE(connection().take_request());
  connection().respond({.body = "one"});
  EXPECT_EQ(output(), "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\none");
  ASSERT_TRUE(connection().take_request());
  connection().respond({.status = 404, .headers = {{"a", "b"}}, .body = "two", .close = true});
  EXPECT_EQ(output(),
            "HTTP/1.1 404 Not Found\r\na: b\r\ncontent-length: 3\r\nconnection: close\r\n\r\ntwo");
  EXPECT_EQ(connection().phase(), Phase::kClosed);
}

TEST_F(HttpConnectionTest, StreamsInChunks) {
  ASSERT_TRUE(request(kGet));
  connection().begin_stream({.headers = {{"content-type", "text/event-stream"}}});
  EXPECT_TRUE(output().ends_with("transfer-encoding: chunked\r\n\r\n"));
  connection().write("data: 1\n\n");
  connection().write("");
  EXPECT_EQ(output(), "9\r\ndata: 1\n\n\r\n");
  connection().end_stream();
  EXPECT_EQ(output(), "0\r\n\r\n");
  EXPECT_EQ(connection().phase(), Phase::kIdle);
  connection().write("late");
  EXPECT_EQ(output(), "");
}

TEST_F(HttpConnectionTest, StreamsToOldClientsUntilTheEnd) {
  ASSERT_TRUE(request("GET / HTTP/1.0\r\n\r\n"));
  connection().begin_stream({});
  EXPECT_TRUE(output().ends_with("connection: close\r\n\r\n"));
  connection().write("abc");
  connection().end_stream();
  EXPECT_EQ(output(), "abc");
  EXPECT_EQ(connection().phase(), Phase::kClosed);
}

TEST_F(HttpConnectionTest, HeadHasNoBody) {
  ASSERT_TRUE(request("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n"));
  connection().respond({.body = "12345"});
  EXPECT_EQ(output(), "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n");
}

TEST_F(HttpConnectionTest, RefusesBeforeTheBodyComes) {
  check_ = [](const HttpRequest& head) -> std::optional<HttpResponse> {
    if (head.path == "/no") return HttpResponse{.status = 401, .body = "key"};
    return std::nullopt;
  };
  EXPECT_EQ(refusal("POST /no HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"), 401);
  // Without a body the connection can go on.
  connection_.emplace(rules_);
  connection_->receive("GET /no HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(connection_->phase(), Phase::kIdle);
  EXPECT_TRUE(request(kGet));
}

TEST_F(HttpConnectionTest, SaysContinueOnce) {
  connection().receive(
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(output(), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_TRUE(request("abc"));
  EXPECT_EQ(output(), "");
}

TEST_F(HttpConnectionTest, PausesReadingWhenTooMuchIsSentAhead) {
  rules_.limits.max_pipelined_bytes = 100;
  ASSERT_TRUE(request(kGet));
  EXPECT_TRUE(connection().wants_input());
  connection().receive(std::string(100, 'x'));
  EXPECT_FALSE(connection().wants_input());
}

TEST_F(HttpConnectionTest, ManyRefusalsInOnePieceDoNotNest) {
  check_ = [](const HttpRequest&) { return HttpResponse{.status = 404}; };
  std::string all;
  for (int i = 0; i < 50'000; ++i) all += "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  connection().receive(all);
  EXPECT_EQ(connection().phase(), Phase::kIdle);
  EXPECT_FALSE(connection().wants_input());
}

TEST_F(HttpConnectionTest, TimesOutInTheMiddleOfARequest) {
  connection().receive("POST / HTTP/1.1\r\nHo");
  EXPECT_EQ(connection().phase(), Phase::kHead);
  connection().time_out();
  EXPECT_TRUE(output().starts_with("HTTP/1.1 408 "));
  EXPECT_EQ(connection().phase(), Phase::kClosed);
}

// A change of any byte gives the same requests in one piece or byte by byte.
TEST_F(HttpConnectionTest, DamagedRequestsAreReadTheSameInAnyPieces) {
  const std::string good =
      "POST /v1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::string bad = good;
    for (uint32_t i = 0; i < 1 + random() % 2; ++i) {
      bad[random() % bad.size()] =
          static_cast<char>(random() % 3 == 0 ? random() % 256 : good[random() % good.size()]);
    }
    std::string seen[2];
    for (const size_t step : {size_t{1}, bad.size()}) {
      HttpConnection c(rules_);
      std::string& out = seen[step == 1];
      for (size_t at = 0; at < bad.size(); at += step) {
        c.receive(std::string_view(bad).substr(at, step));
        while (auto r = c.take_request()) {
          out += r->method + r->path + "?" + r->query + r->body + ";";
          c.respond({});
        }
      }
    }
    ASSERT_EQ(seen[0], seen[1]) << bad;
  }
}

}  // namespace
}  // namespace fathom::net
