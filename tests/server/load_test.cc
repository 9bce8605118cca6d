// How the server behaves when clients come in numbers, go, or do not read.
#include <sys/resource.h>

#include "server/server_fixture.h"

namespace fathom::server {
namespace {

using LoadTest = ServerTest;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

int num_threads() {
  FILE* file = std::fopen("/proc/self/status", "r");
  char line[256];
  int threads = 0;
  while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr) {
    if (std::sscanf(line, "Threads: %d", &threads) == 1) break;
  }
  if (file != nullptr) std::fclose(file);
  return threads;
}

TEST_F(LoadTest, AClosedConnectionCancelsWithin50Ms) {
  start();
  int64_t num_requests = 0;
  for (const bool stream : {true, false}) {
    // The best of a few: on a busy machine any thread may have to wait.
    auto best = Clock::duration::max();
    for (int i = 0; i < 5; ++i) {
      auto client = std::make_unique<HttpClient>(server_->port());
      client->send(HttpClient::request_text("POST", kChat, stream ? kHelloStream : kHello));
      const RequestId id = engine_.wait_for_request(++num_requests);
      ASSERT_GT(id, 0);
      engine_.say(id, 100);
      if (stream) {
        ASSERT_TRUE(client->wait_for("data: "));
      }
      const auto before = Clock::now();
      client.reset();
      ASSERT_TRUE(engine_.wait_for_cancel(id, milliseconds(2000)));
      best = std::min<Clock::duration>(best, Clock::now() - before);
    }
    EXPECT_LT(best, milliseconds(50)) << (stream ? "stream" : "whole");
  }
}

TEST_F(LoadTest, AClientThatDoesNotReadLosesItsStreamAndHoldsNobodyUp) {
  options_.http.max_unsent_bytes = 256 * 1024;
  start();
  HttpClient slow(server_->port(), /*receive_buffer_bytes=*/4096);
  slow.send(HttpClient::request_text("POST", kChat, kHelloStream));
  const RequestId slow_id = engine_.wait_for_request(1);
  HttpClient fast(server_->port());
  fast.send(HttpClient::request_text("POST", kChat, kHelloStream));
  const RequestId fast_id = engine_.wait_for_request(2);
  const int32_t token = demo_tokenizer().encode("a", false).front();
  // The engine never waits: all of this is taken at once.
  for (int i = 0; i < 60'000; ++i) engine_.say(slow_id, token);
  for (int i = 0; i < 10; ++i) engine_.say(fast_id, token);
  engine_.say(fast_id, -1, FinishReason::kLength);
  EXPECT_TRUE(fast.wait_for("[DONE]", 20'000));
  EXPECT_TRUE(engine_.wait_for_cancel(slow_id, milliseconds(20'000)));
  EXPECT_EQ(server_->http_stats().slow_readers, 1);
}

TEST_F(LoadTest, AThousandStreamsNeedNoThreads) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur < 2500) GTEST_SKIP() << "skipped: only " << files.rlim_cur << " files";
  constexpr int kStreams = 1000;
  start();
  const int threads = num_threads();
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < kStreams; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server_->port()));
    ASSERT_TRUE(clients.back()->send(HttpClient::request_text("POST", kChat, kHelloStream))) << i;
    if (i % 100 == 99) {
      ASSERT_EQ(engine_.wait_for_request(i + 1), i + 1);
    }
  }
  EXPECT_EQ(num_threads(), threads);
  EXPECT_EQ(engine_.num_open(), size_t{kStreams});
  const int32_t token = demo_tokenizer().encode("a", false).front();
  for (int i = 1; i <= kStreams; ++i) {
    for (int k = 0; k < 5; ++k) engine_.say(i, token);
    engine_.say(i, -1, FinishReason::kLength);
  }
  for (auto& client : clients) EXPECT_TRUE(client->wait_for("[DONE]", 20'000));
  EXPECT_EQ(observer_.completion_tokens, 5 * kStreams);
}

TEST_F(LoadTest, SilentStreamsGetComments) {
  options_.http.keep_alive_ms = 50;
  start();
  HttpClient client(server_->port());
  client.send(HttpClient::request_text("POST", kChat, kHelloStream));
  ASSERT_GT(engine_.wait_for_request(1), 0);
  EXPECT_TRUE(client.wait_for(": keep-alive\n\n"));
}

TEST_F(LoadTest, DrainingFinishesWhatRunsAndRefusesTheRest) {
  start();
  HttpClient client(server_->port());
  client.send(HttpClient::request_text("POST", kChat, kHelloStream));
  const RequestId id = engine_.wait_for_request(1);
  server_->begin_drain();
  const auto refused = post(kChat, kHello);
  EXPECT_EQ(refused.status, 503);
  EXPECT_FALSE(HttpClient::header(refused.headers, "retry-after").empty());
  EXPECT_EQ(get("/ready").status, 503);
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(server_->num_active(), 1u);
  engine_.say(id, demo_tokenizer().encode("a", false).front());
  engine_.say(id, -1, FinishReason::kLength);
  EXPECT_TRUE(client.wait_for("[DONE]"));
}

TEST_F(LoadTest, EndingTheServerEndsItsStreams) {
  start();
  HttpClient client(server_->port());
  client.send(HttpClient::request_text("POST", kChat, kHelloStream));
  const RequestId id = engine_.wait_for_request(1);
  server_.reset();
  EXPECT_TRUE(client.wait_for_end());
  EXPECT_TRUE(engine_.wait_for_cancel(id, milliseconds(0)));
}

// A body of megabytes takes tens of seconds under a sanitizer on a busy machine.
constexpr int kSlowMs = 240'000;

TEST_F(LoadTest, BodiesThatWaitHaveABudget) {
  options_.codec_threads = 1;
  options_.http.max_request_bytes = 6 << 20;
  say("x");
  start();
  const std::string big = R"({"prompt":")" + std::string(2 << 20, 'a') + "\"}";
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(std::make_unique<HttpClient>(server_->port()));
  // One after the other, so that no more than the budget is ever on its way.
  for (auto& client : clients) client->send(HttpClient::request_text("POST", "/tokenize", big));
  int busy = 0, gone = 0;
  for (auto& client : clients) {
    const int status = client->read_reply(true, kSlowMs).status;
    busy += status == 429 ? 1 : 0;
    gone += status == 0 ? 1 : 0;
  }
  EXPECT_GE(busy + gone, 1);
  HttpClient last(server_->port());
  last.send(HttpClient::request_text("POST", "/tokenize", big));
  EXPECT_EQ(last.read_reply(true, kSlowMs).status, 200);  // all was given back
}

TEST_F(LoadTest, ATextThatCannotFitIsNotEncoded) {
  say("x");
  start();
  const auto slow_post = [this](std::string_view path, const std::string& body) {
    HttpClient client(server_->port());
    client.send(HttpClient::request_text("POST", path, body));
    return client.read_reply(true, kSlowMs);
  };
  const std::string big(4 << 20, 'a');
  const std::string chat =
      R"({"max_tokens":1,"messages":[{"role":"user","content":")" + big + "\"}]}";
  for (const char* path : {"/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens"}) {
    const auto reply = slow_post(path, chat);
    EXPECT_EQ(reply.status, 400) << path;
    EXPECT_NE(reply.body.find("which are at least "), reply.body.npos) << reply.body;
  }
  for (const std::string& prompt : {"\"" + big + "\"", "[\"a\",\"" + big + "\"]"}) {
    const auto reply = slow_post("/v1/completions", R"({"prompt":)" + prompt + "}");
    EXPECT_EQ(text_at(reply.body, "error.code"), "context_length_exceeded");
  }
}

TEST_F(LoadTest, AFullCodecQueueIs429) {
  options_.codec_threads = 1;
  options_.codec_queue = 1;
  say("x");
  start();
  // Texts that take a while to encode keep the one codec thread busy.
  const std::string big = R"({"prompt":")" + std::string(4 << 20, 'a') + "\"}";
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server_->port()));
    clients.back()->send(HttpClient::request_text("POST", "/tokenize", big));
  }
  int busy = 0;
  for (auto& client : clients) {
    const auto reply = client->read_reply(true, kSlowMs);
    EXPECT_TRUE(reply.status == 429 || reply.status == 200) << reply.status;
    busy += reply.status == 429 ? 1 : 0;
  }
  EXPECT_GE(busy, 1);
}

}  // namespace
}  // namespace fathom::server
