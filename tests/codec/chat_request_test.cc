#include "codec/chat_request.h"

#include <gtest/gtest.h>

#include <string>

#include "codec/output_limit.h"

namespace fathom::codec {
namespace {

ChatRequest parse(std::string_view json) {
  Result<ChatRequest> request = parse_chat_request(json, "f.json");
  EXPECT_TRUE(request.has_value()) << request.error().to_string();
  return request ? *std::move(request) : ChatRequest{};
}

std::string error(std::string_view json) {
  Result<ChatRequest> request = parse_chat_request(json, "f.json");
  if (request) return "no error";
  EXPECT_EQ(request.error().code(), StatusCode::kInvalidArgument);
  return request.error().message();
}

TEST(ChatRequest, AListOfMessagesIsRead) {
  const ChatRequest request = parse(R"([
    {"role": "system", "content": "S"},
    {"role": "developer", "content": ""},
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "name": "x"},
    {"role": "latest_reminder", "content": "now"},
    {"role": "assistant", "content": "c", "reasoning_content": "r", "prefix": true, "tool_calls": null}])");
  ASSERT_EQ(request.messages.size(), 5u);
  EXPECT_EQ(request.messages[0].role, Role::kSystem);
  EXPECT_EQ(request.messages[1].role, Role::kSystem);
  EXPECT_EQ(request.messages[2].role, Role::kUser);
  EXPECT_EQ(request.messages[2].content, "a\n\nb");
  EXPECT_EQ(request.messages[3].role, Role::kLatestReminder);
  EXPECT_EQ(request.messages[4].role, Role::kAssistant);
  EXPECT_EQ(request.messages[4].reasoning, "r");
  EXPECT_TRUE(request.messages[4].prefix);
  EXPECT_FALSE(request.think || request.temperature || request.max_tokens || request.seed);
}

TEST(ChatRequest, ABodyGivesItsSamplingValues) {
  const ChatRequest request = parse(R"({
    "model": "m", "stream": true, "messages": [{"role": "user", "content": "q"}],
    "temperature": 0, "top_p": 0.25, "presence_penalty": -1.5, "frequency_penalty": 2,
    "max_tokens": 5, "max_completion_tokens": 7, "seed": 18446744073709551615,
    "stop": ["a", "b"], "tools": [], "response_format": {"type": "text"}})");
  EXPECT_EQ(request.temperature, 0.0f);
  EXPECT_EQ(request.top_p, 0.25f);
  EXPECT_EQ(request.presence_penalty, -1.5f);
  EXPECT_EQ(request.frequency_penalty, 2.0f);
  EXPECT_EQ(request.max_tokens, 7);
  EXPECT_EQ(request.seed, ~uint64_t{0});
  EXPECT_EQ(request.stop, (std::vector<std::string>{"a", "b"}));
}

std::string body(const std::string& fields) {
  return R"({"messages":[{"role":"user","content":"q"}],)" + fields + "}";
}

TEST(ChatRequest, ThinkingWinsOverEffort) {
  EXPECT_EQ(parse(body(R"("stop":"x")")).think, std::nullopt);
  EXPECT_EQ(parse(body(R"("thinking":{"type":"enabled"})")).think, Think::kHigh);
  EXPECT_EQ(parse(body(R"("thinking":{"type":"disabled"},"reasoning_effort":"max")")).think,
            Think::kOff);
  EXPECT_EQ(parse(body(R"("thinking":{"type":"adaptive"},"reasoning_effort":"none")")).think,
            Think::kHigh);
  EXPECT_EQ(parse(body(R"("reasoning_effort":"none")")).think, Think::kOff);
  EXPECT_EQ(parse(body(R"("reasoning_effort":"minimal")")).think, Think::kLow);
  EXPECT_EQ(parse(body(R"("reasoning_effort":"medium")")).think, Think::kHigh);
  EXPECT_EQ(parse(body(R"("reasoning_effort":"xhigh")")).think, Think::kXhigh);
  EXPECT_EQ(parse(body(R"("reasoning_effort":"ultra")")).think, Think::kMax);
}

TEST(ChatRequest, NegativeSeedsAreTakenModulo64Bits) {
  EXPECT_EQ(parse(body(R"("seed":-1)")).seed, ~uint64_t{0});
}

TEST(ChatRequest, EachFaultHasOneClearMessage) {
  EXPECT_EQ(error("[\n {\"role\": }]"),
            "f.json: not valid JSON: syntax error at line 2, column 11");
  EXPECT_EQ(error("[]"), "f.json: the list of messages is empty");
  EXPECT_EQ(error("3"), "f.json: expected a list of messages, or an object with a list `messages`");
  EXPECT_EQ(error("{}"),
            "f.json: expected a list of messages, or an object with a list `messages`");
  EXPECT_EQ(error(R"([5])"), "f.json: message 0 is not an object");
  EXPECT_EQ(error(R"([{"content":"x"}])"), "f.json: message 0 has no role");
  EXPECT_EQ(error(R"([{"role":"user","content":"x"},{"role":"robot","content":"x"}])"),
            "f.json: message 1 has an unknown role 'robot'; known: system, developer, user, "
            "assistant, latest_reminder");
  EXPECT_EQ(error(R"([{"role":"tool","content":"x"}])"),
            "f.json: message 0 has role 'tool'; tools are not supported yet");
  EXPECT_EQ(error(R"([{"role":"assistant","content":"x","tool_calls":[]}])"),
            "f.json: message 0 has tool_calls; tools are not supported yet");
  EXPECT_EQ(error(R"([{"role":"user"}])"), "f.json: message 0 has no content");
  EXPECT_EQ(error(R"([{"role":"assistant","content":null}])"), "f.json: message 0 has no content");
  EXPECT_EQ(error(R"([{"role":"user","content":7}])"),
            "f.json: message 0 content must be a string or a list of text blocks");
  EXPECT_EQ(
      error(R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}])"),
      "f.json: message 0 content block 0 has type 'image_url'; only text blocks are supported");
  EXPECT_EQ(
      error(R"([{"role":"assistant","content":"x","prefix":true},{"role":"user","content":""}])"),
      "f.json: message 0 has prefix set, but only the last message can be continued");
  EXPECT_EQ(error(body(R"("tools":[{"type":"function"}])")),
            "f.json: tools are not supported yet; leave `tools` out");
  EXPECT_EQ(error(body(R"("response_format":{"type":"json_object"})")),
            "f.json: only response_format {\"type\": \"text\"} is supported yet");
  EXPECT_EQ(error(body(R"("temperature":"hot")")), "f.json: temperature must be a number");
  EXPECT_EQ(error(body(R"("max_tokens":0)")),
            "f.json: max_tokens must be a whole number from 1 to 2147483647");
  EXPECT_EQ(error(body(R"("max_tokens":1.5)")),
            "f.json: max_tokens must be a whole number from 1 to 2147483647");
  EXPECT_EQ(error(body(R"("seed":18446744073709551616)")),
            "f.json: seed must be a whole number of at most 64 bits");
  EXPECT_EQ(error(body(R"("stop":[1])")), "f.json: stop must be a string or a list of strings");
  EXPECT_EQ(error(body(R"("thinking":true)")),
            "f.json: thinking.type must be 'enabled', 'adaptive' or 'disabled'");
}

TEST(ChatRequest, HostileJsonIsAnErrorAndNotACrash) {
  EXPECT_NE(error(std::string(1000000, '[')).find("not valid JSON: too deep"), std::string::npos);
  EXPECT_NE(error("[{\"role\":\"user\",\"content\":\"\xff\"}]").find("not valid JSON"),
            std::string::npos);
  EXPECT_NE(error("\xef\xbb\xbf[]").find("not valid JSON"), std::string::npos);
  EXPECT_NE(error("").find("not valid JSON"), std::string::npos);
  EXPECT_NE(error("[] []").find("not valid JSON"), std::string::npos);
}

TEST(OutputLimit, DefaultsFollowTheEffortAndTheRoomLeft) {
  const int64_t million = 1048576;
  EXPECT_EQ(*resolve_max_tokens(10, million, 0, Think::kOff), 8192);
  EXPECT_EQ(*resolve_max_tokens(10, million, 0, Think::kLow), 65536);
  EXPECT_EQ(*resolve_max_tokens(10, million, 0, Think::kHigh), 65536);
  EXPECT_EQ(*resolve_max_tokens(10, million, 0, Think::kMax), 131072);
  EXPECT_EQ(*resolve_max_tokens(million - 100, million, 0, Think::kOff), 100);
  EXPECT_EQ(*resolve_max_tokens(million - 1, million, 0, Think::kMax), 1);
  EXPECT_EQ(*resolve_max_tokens(900, 1000, 100, Think::kOff), 100);
}

TEST(OutputLimit, WhatDoesNotFitIsRefusedWithTheNumbers) {
  const Result<int32_t> over = resolve_max_tokens(901, 1000, 100, Think::kOff);
  ASSERT_FALSE(over.has_value());
  EXPECT_EQ(
      over.error().message(),
      "This model's maximum context length is 1000 tokens. However, you requested 1001 tokens "
      "(901 in the messages, 100 in the completion). Please reduce the length of the messages "
      "or completion.");
  EXPECT_FALSE(resolve_max_tokens(1001, 1000, 0, Think::kOff).has_value());
  // A full context has no room for an answer of even one token.
  EXPECT_FALSE(resolve_max_tokens(1000, 1000, 0, Think::kOff).has_value());
}

}  // namespace
}  // namespace fathom::codec
