// include/fathom/codec.h, as a program outside of this project uses it.
#include <gtest/gtest.h>

#include "fathom/codec.h"

namespace fathom {
namespace {

const std::string kTokenizer = FATHOM_SOURCE_DIR "/models/demo/tokenizer.json";
constexpr std::string_view kBody =
    R"({"messages":[{"role":"user","content":"Ping <think>"}],"thinking":{"type":"disabled"},
        "stop":["END"],"temperature":0.25,"max_tokens":9,"seed":4,
        "tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]})";

TEST(PublicCodec, RequestsBecomePromptsIdsAndSettings) {
  const auto codec = Codec::open(kTokenizer);
  ASSERT_TRUE(codec) << codec.error().message();
  const auto rendered = (*codec)->render(ApiProtocol::kChatCompletions, kBody);
  ASSERT_TRUE(rendered) << rendered.error().message();
  EXPECT_TRUE(rendered->prompt.ends_with("<｜User｜>Ping <think><｜Assistant｜></think>"));
  EXPECT_EQ((*codec)->decode(rendered->ids), rendered->prompt);
  const auto [begin, end] = rendered->controls.back();
  EXPECT_EQ(rendered->prompt.substr(begin, end - begin), "</think>");
  EXPECT_EQ(rendered->temperature, 0.25f);
  EXPECT_EQ(rendered->max_tokens, 9u);
  EXPECT_EQ(rendered->seed, 4u);
  EXPECT_EQ(rendered->stop, std::vector<std::string>{"END"});
  EXPECT_EQ(rendered->constraint, "tool_call");
  EXPECT_FALSE(rendered->thinking);
}

TEST(PublicCodec, OutputsBecomeEventsAndAnswers) {
  const auto codec = Codec::open(kTokenizer);
  ASSERT_TRUE(codec);
  auto reader = (*codec)->read_answer(ApiProtocol::kMessages, R"({"messages":[
      {"role":"user","content":"x"}],"thinking":{"type":"disabled"},"stream":true})",
                                      {.id = "a", .model = "m", .prompt_tokens = 3});
  ASSERT_TRUE(reader) << reader.error().message();
  std::string events;
  const std::vector<int32_t> ids = (*codec)->encode("Hello there");
  for (const int32_t id : ids) ASSERT_TRUE((*reader)->push_ids({&id, 1}, &events).ok());
  EXPECT_FALSE((*reader)->finished());
  (*reader)->finish(AnswerEnd::kStop, &events);
  EXPECT_TRUE(events.starts_with("event: message_start\ndata: {"));
  EXPECT_TRUE(events.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"));
  EXPECT_NE((*reader)->json().find(R"("content":[{"type":"text","text":"Hello there"}])"),
            std::string::npos);
  EXPECT_NE((*reader)->json().find("\"output_tokens\":" + std::to_string(ids.size())),
            std::string::npos);
  const int32_t unknown = 1 << 20;
  auto other = (*codec)->read_answer(ApiProtocol::kResponses, R"({"input":"x"})", {});
  ASSERT_TRUE(other);
  EXPECT_EQ((*other)->push_ids({&unknown, 1}, nullptr).code(), StatusCode::kInternal);
}

TEST(PublicCodec, AStopStringEndsTheAnswerAndTextNeedsNoTokenizer) {
  const auto codec = Codec::open(std::nullopt);
  ASSERT_TRUE(codec);
  EXPECT_TRUE((*codec)->render(ApiProtocol::kChatCompletions, kBody)->ids.empty());
  auto reader = (*codec)->read_answer(ApiProtocol::kChatCompletions, kBody, {.id = "a"});
  ASSERT_TRUE(reader);
  (*reader)->push_text("one E", 2, nullptr);
  EXPECT_FALSE((*reader)->finished());
  (*reader)->push_text("ND two", 2, nullptr);
  EXPECT_TRUE((*reader)->finished());
  EXPECT_NE((*reader)->json().find(R"("content":"one ")"), std::string::npos);
}

TEST(PublicCodec, ErrorsAreForClients) {
  const auto codec = Codec::open(std::nullopt);
  const auto rendered = (*codec)->render(ApiProtocol::kChatCompletions, R"({"messages":[]})");
  ASSERT_FALSE(rendered);
  EXPECT_EQ(codec_error_json(rendered.error()),
            R"({"error":{"message":"Empty input messages","type":"invalid_request_error",)"
            R"("param":null,"code":"invalid_request_error"}})");
  EXPECT_EQ(Codec::open("/absent/tokenizer.json").error().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace fathom
