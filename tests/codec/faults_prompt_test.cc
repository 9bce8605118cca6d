// What users need of prompts, limits and images where deepseek-recipe 0.2.0 has a fault.  Each test
// begins with the kind of the fault (recipe.md 7.3).
#include "codec/image_header.h"
#include "codec/image_source.h"
#include "codec/output_limit.h"
#include "codec/request_fixture.h"

namespace fathom::codec {
namespace {

InputMessage message(Role role, std::string_view content) {
  InputMessage out;
  out.role = role;
  out.content = content;
  return out;
}

InputMessage assistant(std::string_view content, std::optional<std::string> reasoning,
                       bool prefix) {
  InputMessage out = message(Role::kAssistant, content);
  out.reasoning_content = std::move(reasoning);
  out.prefix = prefix;
  return out;
}

ToolDefinition tool(bool deferred) {
  ToolDefinition out;
  out.name = "f";
  out.parameters = JsonObject();
  out.defer_loading = deferred;
  return out;
}

TEST(PromptFaults, ReminderLostNoMore) {
  Conversation conversation;
  conversation.thinking = false;
  conversation.messages = {message(Role::kUser, "q"), message(Role::kLatestReminder, "a"),
                           message(Role::kLatestReminder, "b")};
  EXPECT_EQ(text_of_prompt(conversation),
            "<｜begin▁of▁sentence｜><｜User｜>q<｜latest_reminder｜>b<｜Assistant｜></think>");
}

TEST(PromptFaults, PrefixFirstKeepsItsReasoning) {
  Conversation conversation;
  conversation.messages = {assistant("", "R", true)};
  EXPECT_TRUE(text_of_prompt(conversation).ends_with("<｜Assistant｜><think>R"));
  conversation.messages = {assistant("A", "R", true)};
  EXPECT_TRUE(text_of_prompt(conversation).ends_with("<｜Assistant｜><think>R</think>A"));
}

TEST(PromptFaults, V4PrefixNoThinkEndsInAThinkingTag) {
  Conversation conversation;
  conversation.messages = {message(Role::kUser, "q"), assistant("", std::nullopt, true)};
  EXPECT_TRUE(
      text_of_prompt(conversation, ModelVersion::kV4Pro).ends_with("<｜Assistant｜><think>"));
}

TEST(PromptFaults, V4ReasoningOffIsNotRendered) {
  Conversation conversation;
  conversation.thinking = false;
  conversation.tools = {tool(false)};
  conversation.messages = {message(Role::kUser, "q"), assistant("a", "R1", false),
                           message(Role::kUser, "q2"), assistant("b", "R2", true)};
  const std::string text = text_of_prompt(conversation, ModelVersion::kV4Pro);
  EXPECT_EQ(text.find("R1"), std::string::npos);
  EXPECT_EQ(text.find("R2"), std::string::npos);
  EXPECT_TRUE(text.ends_with("<｜Assistant｜></think>b"));
}

TEST(PromptFaults, V4EmptyCallsWriteNoBlock) {
  Conversation conversation;
  conversation.thinking = false;
  conversation.messages = {message(Role::kUser, "q"), assistant("z", std::nullopt, false)};
  conversation.messages[1].tool_calls = {};
  EXPECT_EQ(text_of_prompt(conversation, ModelVersion::kV4Pro),
            "<｜begin▁of▁sentence｜><｜User｜>q<｜Assistant｜></think>z<｜end▁of▁sentence｜>"
            "<｜Assistant｜></think>");
}

TEST(PromptFaults, ImageCountMustBeThatOfThePlaceholders) {
  for (const ModelVersion version : {ModelVersion::kV41Flash, ModelVersion::kV4Pro}) {
    Conversation conversation;
    conversation.messages = {message(Role::kUser, "a <｜image｜> b")};
    conversation.messages[0].image_sources.resize(2);
    RenderOptions options;
    options.version = version;
    const Result<Prompt> prompt = render_prompt(conversation, options);
    ASSERT_FALSE(prompt);
    EXPECT_NE(prompt.error().message().find("more images than placeholders"), std::string::npos);
  }
}

TEST(PromptFaults, DeferredOnlyWritesNoToolSection) {
  Conversation conversation;
  conversation.messages = {message(Role::kUser, "q")};
  conversation.tools = {tool(true)};
  for (const ModelVersion version : {ModelVersion::kV41Flash, ModelVersion::kV4Pro}) {
    EXPECT_EQ(text_of_prompt(conversation, version).find("## Tools"), std::string::npos);
  }
}

TEST(LimitFaults, DefaultAboveBoundIsLowered) {
  ConvertOptions options = test_options();
  options.thinking_max_tokens = 100;
  ConversationRequest request;
  EXPECT_EQ(*resolve_max_tokens(request, options, 10, 1 << 20), 100u);
  options.non_thinking_max_tokens = 50;
  request.conversation.thinking = false;
  EXPECT_EQ(*resolve_max_tokens(request, options, 10, 1 << 20), 50u);
}

TEST(LimitFaults, ContextOverrunIsRefused) {
  const Result<uint32_t> limit =
      resolve_max_tokens(ConversationRequest(), test_options(), 100, 100);
  ASSERT_FALSE(limit);
  EXPECT_EQ(limit.error().message(),
            "This model's maximum context length is 100 tokens. However, you requested 100 tokens "
            "(100 in the messages, 0 in the completion). Please reduce the length of the messages "
            "or completion.");
}

TEST(ImageFaults, ExifIgnoredNoMore) {
  // SOI, APP1 with orientation 6 (a quarter turn), SOF0 of 80 x 40.
  const std::string jpeg(
      "\xFF\xD8\xFF\xE1\0\x22"
      "Exif\0\0MM\0\x2A\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0"
      "\xFF\xC0\0\x11\x08\0\x28\0\x50\3",
      2 + 36 + 10);
  const auto header = read_image_header(jpeg);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->orientation, 6);
  EXPECT_EQ(header->width, 40);
  EXPECT_EQ(header->height, 80);
}

}  // namespace
}  // namespace fathom::codec
