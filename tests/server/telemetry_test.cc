#include "server/telemetry.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "codec/json_text.h"
#include "harness/http_client.h"
#include "server/page.h"
#include "server/server_fixture.h"

namespace fathom::server {
namespace {

class TelemetryTest : public ServerTest {
 protected:
  // A server that is observed by a Telemetry and has its routes.
  void start_observed(std::string_view keys = "") {
    telemetry_ = std::make_unique<Telemetry>(telemetry_options_, engine_, [this](std::string line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(std::move(line));
    });
    ApiKeys loaded;
    if (!keys.empty()) loaded = *ApiKeys::parse(keys, "keys", 0, 0);
    server_ = *Server::create(options_, model_, std::move(loaded), engine_, *telemetry_);
    add_page_routes(&server_->router());
    telemetry_->add_routes(&server_->router());
    Server* server = server_.get();
    server->on_tick([this, server] { telemetry_->tick(server->draining()); });
    ASSERT_TRUE(server_->start().ok());
  }
  void TearDown() override {
    server_.reset();
    telemetry_.reset();
  }
  // The log, when it has so many lines.
  std::vector<std::string> log(size_t num_lines) {
    for (int i = 0; i < 1000; ++i) {
      {
        const std::lock_guard lock(mutex_);
        if (lines_.size() >= num_lines) return lines_;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ADD_FAILURE() << "the log stays short";
    return {};
  }
  // The value of a metric's line, "" if there is none.
  std::string metric(const std::string& line) {
    const std::string page = "\n" + get("/metrics").body;
    const size_t at = page.find("\n" + line + " ");
    if (at == page.npos) return "";
    const size_t begin = at + line.size() + 2;
    return page.substr(begin, page.find('\n', begin) - begin);
  }

  static std::string header(const HttpClient::Reply& reply, const std::string& name) {
    const size_t at = reply.headers.find("\r\n" + name + ": ");
    if (at == reply.headers.npos) return "";
    const size_t begin = at + name.size() + 4;
    return reply.headers.substr(begin, reply.headers.find("\r\n", begin) - begin);
  }

  static constexpr const char* kChat =
      R"({"model":"demo","messages":[{"role":"user","content":"secret words"}]})";
  TelemetryOptions telemetry_options_{.model_name = "demo"};
  std::unique_ptr<Telemetry> telemetry_;
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

TEST_F(TelemetryTest, MetricsCountRequestsAndTokens) {
  telemetry_options_.vllm_names = true;
  say("one two");
  engine_.cached_tokens = 4;
  engine_.queue_s = 0.25;
  const size_t num_tokens = engine_.answer->size();
  start_observed();
  const std::string done = R"({model_name="demo",finished_reason="stop"})";
  EXPECT_EQ(metric("fathom:requests_finished_total" + done), "0");
  EXPECT_EQ(post("/v1/chat/completions", kChat).status, 200);
  EXPECT_EQ(post("/v1/chat/completions", "{").status, 400);
  log(3);
  EXPECT_EQ(metric("fathom:requests_finished_total" + done), "1");
  EXPECT_EQ(metric("vllm:request_success_total" + done), "1");
  const std::string label = R"({model_name="demo"})";
  EXPECT_EQ(metric("vllm:generation_tokens_total" + label), std::to_string(num_tokens));
  EXPECT_EQ(metric("vllm:prefix_cache_hits_total" + label), "4");
  EXPECT_GT(std::stoi(metric("vllm:prompt_tokens_total" + label)), 4);
  EXPECT_EQ(metric("vllm:time_to_first_token_seconds_count" + label), "1");
  EXPECT_EQ(metric("vllm:inter_token_latency_seconds_count" + label),
            std::to_string(num_tokens - 1));
  for (const char* name :
       {"request_queue_time_seconds", "request_prefill_time_seconds", "request_decode_time_seconds",
        "request_inference_time_seconds", "request_time_per_output_token_seconds"}) {
    EXPECT_EQ(metric("vllm:" + std::string(name) + "_count" + label), "1") << name;
  }
  EXPECT_EQ(metric("vllm:request_queue_time_seconds_sum" + label), "0.25");
  EXPECT_EQ(metric("vllm:request_max_num_generation_tokens_sum" + label),
            std::to_string(num_tokens));
  EXPECT_EQ(metric("vllm:request_params_n_sum" + label), "1");
  EXPECT_EQ(metric("vllm:e2e_request_latency_seconds_count" + label), "1");
  EXPECT_EQ(metric("vllm:num_requests_running" + label), "0");
  for (const char* status : {"200", "400"}) {
    EXPECT_EQ(metric(R"(fathom:http_requests_total{model_name="demo",route="/v1/chat/completions",)"
                     R"(method="POST",status=")" +
                     std::string(status) + "\"}"),
              "1");
  }
}

TEST_F(TelemetryTest, SecondNamesAreThereOnlyWhenAskedFor) {
  start_observed();
  const auto reply = get("/metrics");
  EXPECT_EQ(reply.body.find("vllm:"), reply.body.npos);
  EXPECT_NE(reply.body.find("# TYPE fathom:time_to_first_token_seconds histogram"),
            reply.body.npos);
}

TEST_F(TelemetryTest, UnknownPathsAndMethodsMakeNoNewSeries) {
  start_observed();
  for (int i = 0; i < 20; ++i) get("/nowhere/" + std::to_string(i));
  const auto page = get("/metrics").body;
  EXPECT_EQ(page.find("nowhere"), page.npos);
  EXPECT_EQ(
      metric(
          R"(fathom:http_requests_total{model_name="demo",route="none",method="GET",status="404"})"),
      "20");
}

TEST_F(TelemetryTest, ARequestIsOneLineOfJsonWithoutItsText) {
  say("the secret answer");
  start_observed("alice sk-0123456789abcdef0123\n");
  const auto reply =
      post("/v1/chat/completions", kChat,
           "authorization: Bearer sk-0123456789abcdef0123\r\nx-request-id: mine\r\n"
           "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n");
  EXPECT_EQ(reply.status, 200);
  const std::string line = log(1).front();
  EXPECT_EQ(line.find("secret"), line.npos);
  EXPECT_EQ(line.find("sk-"), line.npos);
  EXPECT_EQ(line.find('\n'), line.npos);
  EXPECT_EQ(text_at(line, "request_id"), "mine");
  EXPECT_EQ(text_at(line, "level"), "info");
  EXPECT_EQ(text_at(line, "key"), "alice");
  EXPECT_EQ(text_at(line, "trace_id"), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(text_at(line, "parent_id"), "b7ad6b7169203331");
  EXPECT_EQ(text_at(line, "status"), "200");
  EXPECT_EQ(text_at(line, "path"), "/v1/chat/completions");
  EXPECT_EQ(text_at(line, "finish"), "stop");
  EXPECT_EQ(text_at(line, "completion_tokens"), std::to_string(engine_.answer->size()));
  EXPECT_EQ(text_at(line, "trace_flags"), "01");
  // The client learns our span, wherever it looks for it.
  const std::string ours =
      "00-0af7651916cd43dd8448eb211c80319c-" + text_at(line, "span_id") + "-01";
  EXPECT_EQ(header(reply, "traceparent"), ours);
  EXPECT_EQ(header(reply, "traceresponse"), ours);
  EXPECT_EQ(header(reply, "server-timing"), "traceparent;desc=\"" + ours + "\"");
}

TEST_F(TelemetryTest, ARefusalAndAStreamAreAPartOfTheTraceToo) {
  say("x");
  start_observed("alice sk-0123456789abcdef0123\n");
  const std::string trace =
      "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n";
  const auto refused = post("/v1/chat/completions", kChat, trace);
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(header(refused, "traceparent").substr(3, 32), "0af7651916cd43dd8448eb211c80319c");
  const auto stream =
      post("/v1/chat/completions", R"({"stream":true,"messages":[{"role":"user","content":"a"}]})",
           trace + "x-api-key: sk-0123456789abcdef0123\r\n");
  EXPECT_EQ(stream.status, 200);
  EXPECT_EQ(header(stream, "traceparent").substr(3, 32), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(header(get("/health"), "traceparent"), "");  // no trace is begun here
}

TEST_F(TelemetryTest, APathCannotBreakTheLog) {
  start_observed();
  get("/%0a\"}{\"x\":1" + std::string(2000, 'y'));
  const std::string line = log(1).front();
  EXPECT_LT(line.size(), 700u);
  EXPECT_EQ(text_at(line, "status"), "404");
  EXPECT_EQ(text_at(line, "trace_id"), "(missing)");
  // Nor can bytes that are no text, or a method without end.
  const std::string bytes = "\xff\xc3\x28";
  HttpClient method(server_->port()), path(server_->port()), origin(server_->port());
  method.send(std::string(3000, 'M') + " / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  path.send("GET /" + bytes + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  origin.send("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: a" + bytes +
              "\r\nOrigin: http://" + bytes + "\r\nContent-Length: 0\r\n\r\n");
  for (HttpClient* client : {&method, &path, &origin}) {
    const auto reply = client->read_reply();
    EXPECT_GE(reply.status, 400);
    EXPECT_EQ(reply.headers.find('\xff'), std::string::npos);
    EXPECT_TRUE(codec::parse_json(reply.body).has_value()) << reply.body;
  }
  for (const std::string& one : log(4)) {
    EXPECT_LT(one.size(), 700u);
    EXPECT_EQ(text_at(one, "event"), "request");
  }
}

TEST_F(TelemetryTest, WhatIsRefusedBeforeItIsReadIsLoggedWithItsClient) {
  options_.http.limits.max_body_bytes = 100;
  options_.http.head_timeout_ms = options_.http.body_timeout_ms = 150;
  start_observed();
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"\x16\x03 no HTTP\r\n\r\n", "400", ""},
      {"GET /he", "408", ""},
      {"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx", "408",
       "/v1/messages"},
      {"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n", "413",
       "/tokenize"},
      {"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n", "404", "/nowhere"},
  };
  size_t lines = 0;
  for (const auto& [text, status, path] : cases) {
    HttpClient client(server_->port());
    client.send(text);
    EXPECT_TRUE(client.wait_for(status)) << text;
    const std::string line = log(++lines).back();
    EXPECT_EQ(text_at(line, "status"), status) << line;
    EXPECT_EQ(text_at(line, "peer"), "127.0.0.1") << line;
    EXPECT_EQ(text_at(line, "path"), path) << line;
    if (std::string_view(path) == "/v1/messages") {  // an error of this protocol, too
      EXPECT_TRUE(client.wait_for(R"({"type":"error","error":{)")) << client.seen();
    }
  }
}

TEST_F(TelemetryTest, TheLevelChoosesWhatIsLogged) {
  telemetry_options_.log_level = LogLevel::kWarning;
  say("x");
  start_observed();
  post("/v1/chat/completions", kChat);
  get("/health");
  get("/nowhere");
  const auto lines = log(1);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(text_at(lines[0], "level"), "warning");
}

TEST_F(TelemetryTest, LevelsHaveNames) {
  for (const char* name : {"off", "error", "warning", "info"}) {
    EXPECT_EQ(log_level_name(*parse_log_level(name)), name);
  }
  EXPECT_FALSE(parse_log_level("verbose").has_value());
}

TEST_F(TelemetryTest, MetricsAndFeedWantAKeyWhenTheyShould) {
  telemetry_options_.protect_metrics = true;
  start_observed("alice sk-0123456789abcdef0123\n");
  EXPECT_EQ(get("/metrics").status, 401);
  EXPECT_EQ(get("/debug/engine").status, 401);
  EXPECT_EQ(get("/").status, 200);
  EXPECT_EQ(get("/metrics", "x-api-key: sk-0123456789abcdef0123\r\n").status, 200);
}

TEST_F(TelemetryTest, TheFeedTellsTheStateAndEndsWhenTheServerDrains) {
  start_observed();
  std::thread drain([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    server_->begin_drain();
  });
  const auto reply = get("/debug/engine");  // returns when the stream ends
  drain.join();
  EXPECT_EQ(reply.status, 200);
  const std::vector<std::string> states = events(reply.body);
  EXPECT_GE(states.size(), 3u);
  EXPECT_LE(states.size(), 8u);
  EXPECT_EQ(text_at(states.front(), "generated_tokens"), "0");
  EXPECT_LT(std::stod(text_at(states.front(), "time_s")),
            std::stod(text_at(states.back(), "time_s")));
}

TEST_F(TelemetryTest, ThePageIsServedWithItsPolicy) {
  start_observed();
  const auto page = get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(header(page, "content-type"), "text/html; charset=utf-8");
  EXPECT_EQ(header(page, "content-security-policy"), kPagePolicy);
  EXPECT_NE(page.body.find("<title>Fathom</title>"), page.body.npos);
  // Whatever the page names is there.
  for (size_t at = 0; (at = page.body.find("\"page/", at)) != page.body.npos; ++at) {
    const size_t end = page.body.find('"', at + 1);
    EXPECT_EQ(get("/" + page.body.substr(at + 1, end - at - 1)).status, 200);
  }
  const auto again = get("/", "if-none-match: " + header(page, "etag") + "\r\n");
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
  EXPECT_EQ(get("/page/../page/app.js").status, 404);
}

}  // namespace
}  // namespace fathom::server
