#include "codec/chat_file.h"

#include <gtest/gtest.h>

#include <string>

#include "codec/output_limit.h"

namespace fathom::codec {
namespace {

ChatFile parse(std::string_view json) {
  Result<ChatFile> file = read_chat_file(json, "f.json");
  EXPECT_TRUE(file.has_value()) << file.error().to_string();
  return file ? *std::move(file) : ChatFile{};
}

std::string error(std::string_view json) {
  Result<ChatFile> file = read_chat_file(json, "f.json");
  if (file) return "no error";
  EXPECT_EQ(file.error().code(), StatusCode::kInvalidArgument);
  return file.error().message();
}

TEST(ChatFile, AListOfMessagesIsRead) {
  const ChatFile file = parse(R"([
    {"role": "system", "content": "S"},
    {"role": "developer", "content": "D"},
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "name": "x"},
    {"role": "latest_reminder", "content": "now"},
    {"role": "assistant", "content": "c", "reasoning_content": "r", "prefix": true, "tool_calls": null}])");
  const auto& messages = file.request.conversation.messages;
  ASSERT_EQ(messages.size(), 5u);
  EXPECT_EQ(messages[0].role, Role::kSystem);
  EXPECT_EQ(messages[1].role, Role::kSystem);
  EXPECT_EQ(messages[2].role, Role::kUser);
  EXPECT_EQ(messages[2].content, "a\n\nb");
  EXPECT_EQ(messages[3].role, Role::kLatestReminder);
  EXPECT_EQ(messages[4].role, Role::kAssistant);
  EXPECT_EQ(messages[4].reasoning_content, "r");
  EXPECT_TRUE(messages[4].prefix);
  EXPECT_FALSE(file.think || file.temperature || file.top_p || file.request.inference.seed);
}

TEST(ChatFile, ABodyGivesItsSamplingValues) {
  const ChatFile file = parse(R"({
    "model": "any", "stream": true, "messages": [{"role": "user", "content": "q"}],
    "temperature": 0, "top_p": 0.25, "presence_penalty": -1.5, "frequency_penalty": 2,
    "max_tokens": 1000000, "seed": 5, "stop": ["a", "b"], "response_format": {"type": "text"}})");
  EXPECT_EQ(file.temperature, 0.0f);
  EXPECT_EQ(file.top_p, 0.25f);
  const InferenceOptions& inference = file.request.inference;
  EXPECT_EQ(inference.presence_penalty, -1.5f);
  EXPECT_EQ(inference.frequency_penalty, 2.0f);
  EXPECT_EQ(inference.max_tokens, 1000000u);
  EXPECT_EQ(inference.seed, 5u);
  EXPECT_EQ(file.request.parsing.stop_sequences, (std::vector<std::string>{"a", "b"}));
}

std::string body(const std::string& fields) {
  return R"({"messages":[{"role":"user","content":"q"}],)" + fields + "}";
}

TEST(ChatFile, ThinkingWinsOverEffort) {
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

TEST(ChatFile, ToolsAndFormatsAreRead) {
  const ChatFile file = parse(body(
      R"("tools":[{"type":"function","function":{"name":"f"}}],
         "response_format":{"type":"regex","regex":"a+"})"));
  EXPECT_EQ(file.request.conversation.tools.at(0).name, "f");
  EXPECT_EQ(file.request.conversation.response_format.regex, "a+");
}

TEST(ChatFile, EachFaultHasOneClearMessage) {
  EXPECT_EQ(error("[\n {\"role\": }]"),
            "f.json: not valid JSON: expected a value at line 2 column 11");
  EXPECT_EQ(error("[]"), "f.json: the list of messages is empty");
  EXPECT_EQ(error("3"), "f.json: expected a list of messages, or an object with a list `messages`");
  EXPECT_EQ(error("{}"),
            "f.json: expected a list of messages, or an object with a list `messages`");
  EXPECT_EQ(error("[5]"),
            "f.json: invalid request body: messages[0]: expected an object, got an "
            "integer");
  EXPECT_EQ(error(R"([{"content":"x"}])"),
            "f.json: invalid request body: messages[0]: missing field `role`");
  EXPECT_EQ(error(R"([{"role":"user","content":"x"},{"role":"robot","content":"x"}])"),
            "f.json: invalid request body: messages[1].role: unknown variant `robot`, expected one "
            "of `system`, `developer`, `user`, `assistant`, `tool`, `latest_reminder`");
  EXPECT_EQ(
      error(R"([{"role":"user","content":7}])"),
      "f.json: invalid request body: messages[0].content: expected a string or a list, got an "
      "integer");
  EXPECT_EQ(error(body(R"("temperature":"hot")")),
            "f.json: invalid request body: temperature: expected a number, got a string");
  EXPECT_EQ(
      error(body(R"("seed":18446744073709551616)")),
      "f.json: invalid request body: seed: expected an integer, got a number with a fraction");
}

TEST(ChatFile, HostileJsonIsAnErrorAndNotACrash) {
  EXPECT_NE(error(std::string(1000000, '[')).find("more than 127 levels"), std::string::npos);
  EXPECT_NE(error("[{\"role\":\"user\",\"content\":\"\xff\"}]").find("invalid UTF-8"),
            std::string::npos);
  EXPECT_NE(error("\xef\xbb\xbf[]").find("not valid JSON"), std::string::npos);
  EXPECT_NE(error("").find("not valid JSON"), std::string::npos);
  EXPECT_NE(error("[] []").find("not valid JSON"), std::string::npos);
}

ConversationRequest thinking(Think think, std::optional<uint32_t> max_tokens = std::nullopt) {
  ConversationRequest request;
  set_think(think, &request.conversation);
  request.inference.max_tokens = max_tokens;
  return request;
}

TEST(OutputLimit, DefaultsFollowTheEffortAndTheRoomLeft) {
  const int64_t million = 1048576;
  const ConvertOptions options;
  EXPECT_EQ(*resolve_max_tokens(thinking(Think::kOff), options, 10, million), 8192u);
  EXPECT_EQ(*resolve_max_tokens(thinking(Think::kLow), options, 10, million), 65536u);
  EXPECT_EQ(*resolve_max_tokens(thinking(Think::kHigh), options, 10, million), 65536u);
  EXPECT_EQ(*resolve_max_tokens(thinking(Think::kMax), options, 10, million), 131072u);
  EXPECT_EQ(*resolve_max_tokens(thinking(Think::kOff), options, million - 100, million), 100u);
  EXPECT_EQ(*resolve_max_tokens(thinking(Think::kMax), options, million - 1, million), 1u);
  EXPECT_EQ(*resolve_max_tokens(thinking(Think::kOff, 100), options, 900, 1000), 100u);
}

TEST(OutputLimit, WhatDoesNotFitIsRefusedWithTheNumbers) {
  const Result<uint32_t> over =
      resolve_max_tokens(thinking(Think::kOff, 100), ConvertOptions(), 901, 1000);
  ASSERT_FALSE(over.has_value());
  EXPECT_EQ(
      over.error().message(),
      "This model's maximum context length is 1000 tokens. However, you requested 1001 tokens "
      "(901 in the messages, 100 in the completion). Please reduce the length of the messages "
      "or completion.");
}

TEST(ThinkLevels, NamesRoundTrip) {
  for (const Think t : {Think::kOff, Think::kLow, Think::kHigh, Think::kXhigh, Think::kMax}) {
    EXPECT_EQ(parse_think(think_name(t)), t);
    Conversation conversation;
    set_think(t, &conversation);
    EXPECT_EQ(think_of(conversation), t);
  }
  EXPECT_EQ(parse_think("medium"), std::nullopt);
}

}  // namespace
}  // namespace fathom::codec
