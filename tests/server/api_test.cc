// What each endpoint answers.
#include "server/server_fixture.h"

namespace fathom::server {
namespace {

using ApiTest = ServerTest;

TEST_F(ApiTest, ChatAnswersWhole) {
  say("Hello there.");
  engine_.cached_tokens = 3;
  start();
  const auto reply = post(kChat, kHello);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(text_at(reply.body, "choices.0.message.content"), "Hello there.");
  EXPECT_EQ(text_at(reply.body, "choices.0.finish_reason"), "stop");
  EXPECT_EQ(text_at(reply.body, "model"), "demo");
  EXPECT_EQ(text_at(reply.body, "system_fingerprint"), "fp_test");
  EXPECT_EQ(text_at(reply.body, "usage.prompt_tokens_details.cached_tokens"), "3");
  EXPECT_EQ(text_at(reply.body, "usage.prompt_tokens"),
            std::to_string(engine_.request(1).prompt.size()));
  EXPECT_EQ(HttpClient::header(reply.headers, "x-request-id").substr(0, 4), "req_");
}

TEST_F(ApiTest, ChatStreamsTheSameText) {
  say("One two three.");
  start();
  const auto reply = post(
      kChat,
      R"({"model":"alias","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]})",
      "X-Request-Id: mine-7\r\n");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(HttpClient::header(reply.headers, "x-request-id"), "mine-7");
  EXPECT_EQ(HttpClient::header(reply.headers, "request-id"), "mine-7");
  const std::vector<std::string> data = events(reply.body);
  ASSERT_GE(data.size(), 4u);
  EXPECT_EQ(data.back(), "[DONE]");
  std::string text;
  for (size_t i = 0; i + 1 < data.size(); ++i) {
    EXPECT_EQ(text_at(data[i], "model"), "alias");
    const auto content = at(json(data[i]), "choices.0.delta.content");
    if (content.if_string() != nullptr) text += *content.if_string();
  }
  EXPECT_EQ(text, "One two three.");
  EXPECT_NE(text_at(data[data.size() - 2], "usage.completion_tokens"), "(missing)");
}

TEST_F(ApiTest, StopStringsEndTheAnswerAndTheEngine) {
  start();
  HttpClient client(server_->port());
  client.send(HttpClient::request_text(
      "POST", kChat, R"({"stop":" two","messages":[{"role":"user","content":"hi"}]})"));
  const RequestId id = engine_.wait_for_request(1);
  for (const int32_t token : demo_tokenizer().encode("One two three", false)) {
    engine_.say(id, token);
  }
  const auto reply = client.read_reply();
  EXPECT_EQ(text_at(reply.body, "choices.0.message.content"), "One");
  EXPECT_EQ(text_at(reply.body, "choices.0.finish_reason"), "stop");
  EXPECT_TRUE(engine_.wait_for_cancel(id, std::chrono::seconds(2)));
}

TEST_F(ApiTest, SamplingReachesTheEngine) {
  say("x");
  options_.client_sampling = true;
  start();
  const auto reply =
      post(kChat,
           R"({"temperature":0.5,"top_p":0.9,"top_k":7,"min_p":0.1,"repetition_penalty":1.5,
          "presence_penalty":1,"frequency_penalty":-1,"seed":42,"max_tokens":9,"ignore_eos":true,
          "logit_bias":{"5":-100},"stop_token_ids":[3],"logprobs":true,"top_logprobs":2,
          "priority":4,"min_tokens":3,"max_draft":2,"allowed_token_ids":[7,8],"bad_words":["no"],"messages":[{"role":"user","content":"hi"}]})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  const Request r = engine_.request(1);
  EXPECT_FLOAT_EQ(r.params.temperature, 0.5f);
  EXPECT_FLOAT_EQ(r.params.top_p, 0.9f);
  EXPECT_EQ(r.params.top_k, 7);
  EXPECT_FLOAT_EQ(r.params.min_p, 0.1f);
  EXPECT_FLOAT_EQ(r.params.repetition_penalty, 1.5f);
  EXPECT_FLOAT_EQ(r.params.presence_penalty, 1);
  EXPECT_FLOAT_EQ(r.params.frequency_penalty, -1);
  EXPECT_EQ(r.params.seed, 42u);
  EXPECT_EQ(r.params.max_tokens, 9);
  EXPECT_TRUE(r.params.ignore_eos);
  EXPECT_EQ(r.params.logit_bias, (std::vector<std::pair<int32_t, float>>{{5, -100.0f}}));
  EXPECT_EQ(r.stop_ids, (std::vector<int32_t>{3}));
  EXPECT_EQ(r.params.logprobs, 2);
  EXPECT_EQ(r.priority, 4);
  EXPECT_EQ(r.params.min_tokens, 3);
  EXPECT_EQ(r.params.max_draft, 2);
  EXPECT_EQ(r.params.allowed_ids, (std::vector<int32_t>{7, 8}));
  EXPECT_EQ(r.params.bad_words.size(), 2u);
  EXPECT_EQ(r.params.bad_words[0], demo_tokenizer().encode("no", false));
}

TEST_F(ApiTest, MessagesSpeakAnthropic) {
  say("Hello.");
  start();
  const std::string body =
      R"({"model":"demo","max_tokens":20,"messages":[{"role":"user","content":"hi"}]})";
  const auto reply = post("/v1/messages", body);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(text_at(reply.body, "type"), "message");
  EXPECT_EQ(text_at(reply.body, "content.0.text"), "Hello.");
  EXPECT_EQ(text_at(reply.body, "stop_reason"), "end_turn");
  const auto stream =
      post("/v1/messages",
           R"({"stream":true,"max_tokens":20,"messages":[{"role":"user","content":"hi"}]})");
  EXPECT_NE(stream.body.find("event: message_start\n"), std::string::npos);
  EXPECT_NE(stream.body.find("event: message_stop\n"), std::string::npos);
  const auto count = post("/v1/messages/count_tokens", body);
  EXPECT_EQ(text_at(count.body, "input_tokens"), std::to_string(engine_.request(1).prompt.size()));
}

TEST_F(ApiTest, ResponsesGoOnFromEarlierOnes) {
  say("Paris.");
  start("alice key-alice-1\nbob key-bob-22\n");
  const std::string alice = "Authorization: Bearer key-alice-1\r\n";
  const auto first = post("/v1/responses", R"({"input":"Capital of France?"})", alice);
  ASSERT_EQ(first.status, 200) << first.body;
  EXPECT_EQ(text_at(first.body, "store"), "true");
  const std::string id = text_at(first.body, "id");
  const std::string follow = R"({"input":"And of Spain?","previous_response_id":")" + id + "\"}";
  const auto second = post("/v1/responses", follow, alice);
  ASSERT_EQ(second.status, 200) << second.body;
  EXPECT_EQ(text_at(second.body, "previous_response_id"), id);
  EXPECT_EQ(engine_.request(2).cache_salt, "alice");
  const std::string prompt = demo_tokenizer().decode(engine_.request(2).prompt, false);
  for (const char* part : {"Capital of France?", "Paris.", "And of Spain?"}) {
    EXPECT_NE(prompt.find(part), std::string::npos) << part << " in " << prompt;
  }
  // Another key does not find it, and is not told that it is there.
  const auto other = post("/v1/responses", follow, "x-api-key: key-bob-22\r\n");
  EXPECT_EQ(other.status, 400);
  EXPECT_EQ(text_at(other.body, "error.code"), "previous_response_not_found");
  EXPECT_EQ(text_at(get("/v1/responses/" + id, alice).body, "id"), id);
  EXPECT_EQ(get("/v1/responses/" + id, "x-api-key: key-bob-22\r\n").status, 404);
  EXPECT_EQ(HttpClient(server_->port()).ask("DELETE", "/v1/responses/" + id, "", alice).status,
            200);
  EXPECT_EQ(post("/v1/responses", follow, alice).status, 400);
}

TEST_F(ApiTest, ResponsesThatAreNotStoredAreNotFound) {
  say("x");
  start();
  const auto first = post("/v1/responses", R"({"input":"a","store":false})");
  EXPECT_EQ(text_at(first.body, "store"), "false");
  const auto second = post("/v1/responses", R"({"input":"b","previous_response_id":")" +
                                                text_at(first.body, "id") + "\"}");
  EXPECT_EQ(second.status, 400);
}

TEST_F(ApiTest, CompletionsGoOnFromAPrompt) {
  say(" world and more");
  start();
  const auto reply =
      post("/v1/completions", R"({"prompt":"Hello","max_tokens":50,"echo":true,"stop":" more"})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(text_at(reply.body, "object"), "text_completion");
  EXPECT_EQ(text_at(reply.body, "choices.0.text"), "Hello world and");
  EXPECT_EQ(text_at(reply.body, "choices.0.finish_reason"), "stop");
  const auto bos = demo_tokenizer().find("<｜begin▁of▁sentence｜>");
  EXPECT_EQ(engine_.request(1).prompt.front(), *bos);
}

TEST_F(ApiTest, CompletionsTakeManyPromptsAndSamples) {
  say("ab");
  start();
  const auto reply =
      post("/v1/completions", R"({"prompt":["x","y"],"n":2,"max_tokens":1,"logprobs":1})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(at(json(reply.body), "choices").if_array()->size(), 4u);
  EXPECT_EQ(text_at(reply.body, "choices.3.index"), "3");
  EXPECT_EQ(text_at(reply.body, "choices.3.finish_reason"), "length");
  EXPECT_EQ(text_at(reply.body, "choices.3.logprobs.token_logprobs.0"), "-0.5");
  EXPECT_EQ(text_at(reply.body, "usage.completion_tokens"), "4");
  EXPECT_EQ(post("/v1/completions", R"({"prompt":"x","n":17})").status, 400);
  EXPECT_EQ(post("/v1/completions", R"({"prompt":[]})").status, 400);
  EXPECT_EQ(post("/v1/completions", R"({"prompt":[1,-2]})").status, 400);
  EXPECT_EQ(post("/v1/completions", R"({"prompt":[[1],[2,3]],"max_tokens":1})").status, 200);
}

TEST_F(ApiTest, AStopStringEndsOneSampleOfSeveral) {
  start();
  HttpClient client(server_->port());
  client.send(HttpClient::request_text("POST", "/v1/completions",
                                       R"({"prompt":"x","n":2,"stop":"b","max_tokens":9})"));
  const RequestId id = engine_.wait_for_request(1);
  const auto token = [](const char* text) { return demo_tokenizer().encode(text, false).front(); };
  engine_.say(id, token("b"), FinishReason::kNone, 0);
  engine_.say(id, token("c"), FinishReason::kNone, 1);
  engine_.say(id, token("d"), FinishReason::kLength, 1);
  engine_.say(id, -1, FinishReason::kCancelled, 0);
  const auto reply = client.read_reply();
  EXPECT_EQ(text_at(reply.body, "choices.0.text"), "");
  EXPECT_EQ(text_at(reply.body, "choices.0.finish_reason"), "stop");
  EXPECT_EQ(text_at(reply.body, "choices.1.text"), "cd");
  EXPECT_EQ(engine_.cancelled_samples, (std::vector<std::pair<RequestId, int32_t>>{{id, 0}}));
}

TEST_F(ApiTest, ChatGivesSeveralChoices) {
  say("Hi.");
  start();
  const auto reply = post(kChat, R"({"n":3,"messages":[{"role":"user","content":"hi"}]})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(engine_.request(1).n, 3);
  for (const char* choice : {"choices.0", "choices.1", "choices.2"}) {
    EXPECT_EQ(text_at(reply.body, std::string(choice) + ".message.content"), "Hi.");
  }
  EXPECT_EQ(text_at(reply.body, "usage.completion_tokens"),
            std::to_string(3 * engine_.answer->size()));
  EXPECT_EQ(post(kChat, R"({"n":17,"messages":[{"role":"user","content":"hi"}]})").status, 400);
}

TEST_F(ApiTest, CompletionsStream) {
  say("one two");
  start();
  const auto reply = post(
      "/v1/completions",
      R"({"prompt":"x","max_tokens":50,"stream":true,"stream_options":{"include_usage":true}})");
  const std::vector<std::string> data = events(reply.body);
  ASSERT_GE(data.size(), 3u) << reply.body;
  EXPECT_EQ(data.back(), "[DONE]");
  EXPECT_EQ(text_at(data[data.size() - 2], "choices"), "[]");
  EXPECT_NE(text_at(data[data.size() - 2], "usage.total_tokens"), "(missing)");
  std::string text;
  for (size_t i = 0; i + 2 < data.size(); ++i) text += text_at(data[i], "choices.0.text");
  EXPECT_EQ(text, "one two");
}

TEST_F(ApiTest, TokenizeAndDetokenizeAreInverse) {
  start();
  const auto tokens = post("/tokenize", R"({"content":"Hello, world"})");
  const std::string ids = text_at(tokens.body, "tokens");
  EXPECT_EQ(text_at(post("/detokenize", "{\"tokens\":" + ids + "}").body, "prompt"),
            "Hello, world");
  const auto strings = post("/tokenize", R"({"prompt":"a","return_token_strs":true})");
  EXPECT_EQ(text_at(strings.body, "count"), "2");
  EXPECT_EQ(text_at(strings.body, "token_strs.1"), "a");
  EXPECT_EQ(text_at(post("/tokenize", R"({"messages":[{"role":"user","content":"hi"}]})").body,
                    "max_model_len"),
            "1000");
  EXPECT_EQ(post("/detokenize", R"({"tokens":[99999999]})").status, 400);
  EXPECT_EQ(post("/detokenize", "{}").status, 400);
  EXPECT_EQ(post("/tokenize", "[]").status, 400);
}

TEST_F(ApiTest, ModelsAndHealth) {
  start();
  EXPECT_EQ(text_at(get("/v1/models").body, "data.1.id"), "alias");
  EXPECT_EQ(text_at(get("/v1/models/demo").body, "max_model_len"), "1000");
  EXPECT_EQ(text_at(get("/v1/models/gpt-4").body, "error.code"), "model_not_found");
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(get("/ready").status, 200);
  EXPECT_EQ(text_at(get("/version").body, "version"), "0.0");
  const auto head = HttpClient(server_->port()).ask("HEAD", "/health");
  EXPECT_EQ(head.status, 200);
}

TEST_F(ApiTest, ErrorsHaveTheShapeOfTheRoute) {
  start();
  const auto openai = post(kChat, "{");
  EXPECT_EQ(openai.status, 400);
  EXPECT_EQ(text_at(openai.body, "error.type"), "invalid_request_error");
  const auto anthropic = post("/v1/messages", "{");
  EXPECT_EQ(anthropic.status, 400);
  EXPECT_EQ(text_at(anthropic.body, "type"), "error");
  EXPECT_EQ(text_at(anthropic.body, "error.type"), "invalid_request_error");
  EXPECT_EQ(text_at(anthropic.body, "request_id"),
            HttpClient::header(anthropic.headers, "request-id"));
  const auto model = post(kChat, R"({"model":"gpt-4","messages":[]})");
  EXPECT_EQ(model.status, 404);
  EXPECT_EQ(text_at(model.body, "error.code"), "model_not_found");
  const auto method = get(kChat);
  EXPECT_EQ(method.status, 405);
  EXPECT_EQ(HttpClient::header(method.headers, "allow"), "POST");
  EXPECT_EQ(get("/nothing").status, 404);
  EXPECT_EQ(text_at(post("/v1/messages/x", "{}").body, "error.type"), "not_found_error");
  const auto full =
      post(kChat, R"({"max_tokens":5000,"messages":[{"role":"user","content":"hi"}]})");
  EXPECT_EQ(full.status, 400);
  EXPECT_EQ(text_at(full.body, "error.code"), "context_length_exceeded");
}

TEST_F(ApiTest, EngineFailuresReachTheClient) {
  start();
  engine_.refuse = Status(StatusCode::kResourceExhausted, "the queue is full");
  const auto busy = post(kChat, kHelloStream);
  EXPECT_EQ(busy.status, 429);
  EXPECT_EQ(HttpClient::header(busy.headers, "retry-after"), "1");
  EXPECT_EQ(text_at(busy.body, "error.message"), "the queue is full");
  EXPECT_EQ(text_at(post("/v1/messages", R"({"messages":[{"role":"user","content":"hi"}]})").body,
                    "error.type"),
            "rate_limit_error");
}

}  // namespace
}  // namespace fathom::server
