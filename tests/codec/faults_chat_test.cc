// What Chat Completions clients need where deepseek-recipe 0.2.0 has a fault.  Each test begins
// with the kind of the fault (recipe.md 7.3).
#include "codec/engine_constraint.h"
#include "codec/json_text.h"
#include "codec/request_fixture.h"

namespace fathom::codec {
namespace {

std::string chat(std::string_view more) { return std::string(kUserX) + "," + std::string(more); }

std::string strict_tool(std::string_view parameters) {
  return chat(R"("tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":)" +
              std::string(parameters) + "}}]");
}

std::string parameters_of(const ConversationRequest& request) {
  return write_json(request.conversation.tools.at(0).parameters, JsonStyle::kCompact);
}

TEST(ChatFaults, DeveloperRoleIsReadLikeSystem) {
  const auto request =
      read_chat(R"("messages":[{"role":"developer","content":"d"},{"role":"user","content":"x"}])");
  EXPECT_EQ(request.conversation.messages.at(0).role, Role::kSystem);
  EXPECT_EQ(request.conversation.messages.at(0).content, "d");
}

TEST(ChatFaults, MaxCompletionTokensIsTheOutputLimit) {
  EXPECT_EQ(read_chat(chat(R"("max_completion_tokens":10)")).inference.max_tokens, 10u);
  EXPECT_EQ(chat_error(chat(R"("max_completion_tokens":0)")),
            "Invalid max_tokens value, the valid range of max_tokens is [1, 393216]");
}

TEST(ChatFaults, TopPIgnoredNoMoreIfTheClientsValuesAreKept) {
  ConvertOptions options = test_options();
  options.keep_client_sampling = true;
  for (const char* mode : {"enabled", "disabled"}) {
    for (const char* model : {"m", "v4"}) {
      const auto request =
          read(Protocol::kChatCompletions,
               std::string(R"({"model":")") + model + R"(",)" +
                   chat(R"("top_p":0.5,"temperature":0.25,"thinking":{"type":")") + mode + "\"}}",
               options);
      EXPECT_EQ(request.inference.top_p, 0.5f);
      EXPECT_EQ(request.inference.temperature, 0.25f);
    }
  }
}

TEST(ChatFaults, EffortNumberIsWrittenAsItIs) {
  const auto request = read_chat(chat(R"("reasoning_effort":37)"));
  EXPECT_NE(text_of_prompt(request.conversation).find("Reasoning Effort: 37 (range 1-100"),
            std::string::npos);
  for (const char* wrong : {"0", "101", "-1", "1.5"}) {
    EXPECT_EQ(chat_error(chat(std::string(R"("reasoning_effort":)") + wrong))
                  .find("invalid request body: reasoning_effort: "),
              0u);
  }
}

TEST(ChatFaults, ImagePathNamesMessageAndBlock) {
  EXPECT_EQ(chat_error(R"("messages":[{"role":"user","content":[{"type":"text","text":"a"},
              {"type":"image_url","image_url":{"url":"ftp://x"}}]}])"),
            ".messages[0].content[1]: Unsupported image_url format");
  EXPECT_EQ(
      chat_error(R"("messages":[{"role":"user","content":[{"type":"file","file_id":"a"}]}])"),
      ".messages[0].content[0]: file_id is not supported. Pass the image as a base64 data url "
      "instead.");
}

TEST(ChatFaults, NestedFileFieldsAreReadAsTheSdksWriteThem) {
  const auto request = read_chat(R"("messages":[{"role":"user","content":[{"type":"file",
      "file":{"file_data":"data:image/png;base64,AAAA","filename":"a.png"}}]}])");
  ASSERT_EQ(request.conversation.messages.at(0).image_sources.size(), 1u);
  EXPECT_EQ(request.conversation.messages[0].image_sources[0].data, "data:image/png;base64,AAAA");
}

TEST(ChatFaults, RefusalBlockIsTextOfTheAssistant) {
  const auto request = read_chat(R"("messages":[{"role":"user","content":"x"},
      {"role":"assistant","content":[{"type":"refusal","refusal":"no"}]},
      {"role":"user","content":"y"}])");
  EXPECT_EQ(request.conversation.messages.at(1).content, "no");
}

TEST(ChatFaults, RegexUncheckedNoMore) {
  EXPECT_EQ(chat_error(chat(R"("response_format":{"type":"regex","regex":"a("})"))
                .find("Invalid regex: a group is not closed"),
            0u);
  const auto request = read_chat(chat(R"("response_format":{"type":"regex","regex":"^a{2,3}$"})"));
  EXPECT_EQ(request.inference.output_constraint->text, "^a{2,3}$");
}

constexpr std::string_view kTwoTools =
    R"("tools":[{"type":"function","function":{"name":"f"}},
                {"type":"function","function":{"name":"g"}}],)";

TEST(ChatFaults, AllowedToolsKeepsOnlyThose) {
  const auto request =
      read_chat(chat(std::string(kTwoTools) +
                     R"("tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required",
              "tools":[{"type":"function","function":{"name":"g"}}]}})"));
  ASSERT_EQ(request.conversation.tools.size(), 1u);
  EXPECT_EQ(request.conversation.tools[0].name, "g");
  EXPECT_EQ(request.conversation.tool_choice, ToolChoice::kRequired);
}

TEST(ChatFaults, LoneSurrogateBecomesAReplacementCharacter) {
  const auto request =
      read_chat(R"("messages":[{"role":"user","content":"a\ud800b\udc00c\ud83d\ude00"}])");
  EXPECT_EQ(request.conversation.messages.at(0).content, "a\uFFFDb\uFFFDc\U0001F600");
}

TEST(ChatFaults, PrefixNewlineIsKeptByStartingWithinTheAnswer) {
  const auto request = read_chat(R"("messages":[{"role":"user","content":"x"},
      {"role":"assistant","content":"y","prefix":true}],"thinking":{"type":"disabled"})");
  EXPECT_EQ(request.parsing.thinking_initial_stage, ParsingOptions::Stage::kContentContinuation);
}

TEST(ChatFaults, RequiredWithThinkingThinksFirstAndThenMustCall) {
  const auto request = read_chat(chat(std::string(kTwoTools) + R"("tool_choice":"required")"));
  EXPECT_TRUE(request.conversation.thinking);
  EXPECT_EQ(request.inference.output_constraint->kind, OutputConstraint::Kind::kToolCallRequired);
  EXPECT_FALSE(request.parsing.starts_in_tool_calls);
  EXPECT_EQ(request.parsing.thinking_initial_stage, ParsingOptions::Stage::kReasoningStart);
  EXPECT_TRUE(text_of_prompt(request.conversation).ends_with("<｜Assistant｜><think>"));
}

TEST(ChatFaults, StrictMixOfToolsIsTaken) {
  const auto request = read_chat(chat(
      R"("tools":[{"type":"function","function":{"name":"f","strict":true,
          "parameters":{"type":"object","properties":{"a":{"type":"string","title":"T"}}}}},
        {"type":"function","function":{"name":"g",
          "parameters":{"type":"object","properties":{"a":{"type":"string","title":"T"}}}}}])"));
  EXPECT_EQ(
      parameters_of(request),
      R"({"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false})");
  EXPECT_EQ(write_json(request.conversation.tools.at(1).parameters, JsonStyle::kCompact),
            R"({"type":"object","properties":{"a":{"type":"string","title":"T"}}})");
}

TEST(ChatFaults, StrictFormatToolsMayBeUsedTogether) {
  const auto request = read_chat(
      R"("messages":[{"role":"user","content":"json"}],"response_format":{"type":"json_object"},
         "tools":[{"type":"function","function":{"name":"f","strict":true}}])");
  EXPECT_EQ(request.conversation.response_format.kind, ResponseFormat::Kind::kJsonObject);
  EXPECT_EQ(request.conversation.tools.at(0).strict, true);
}

// As with a schema: prefix and rest together are held to JSON, and the rest is no JSON by itself.
TEST(ChatFaults, PrefillOfAJsonObjectIsGoneOnWith) {
  const auto request = read_chat(
      R"("messages":[{"role":"user","content":"json"},
                     {"role":"assistant","content":"{\"a\":","prefix":true}],
         "response_format":{"type":"json_object"},"thinking":{"type":"disabled"})");
  EXPECT_EQ(request.conversation.response_format.kind, ResponseFormat::Kind::kJsonObject);
  EXPECT_TRUE(request.conversation.messages.back().prefix);
  EXPECT_FALSE(request.parsing.parse_json_output);
  EXPECT_EQ(begun_answer(request.conversation), "{\"a\":");
}

TEST(ChatFaults, StrictRequiredLeavesOptionalPropertiesOptional) {
  EXPECT_EQ(parameters_of(read_chat(strict_tool(
                R"({"type":"object","properties":{"a":{"type":"string"},"b":{"type":"null"}}})"))),
            R"({"type":"object","properties":{"a":{"type":"string"},"b":{"type":"null"}},)"
            R"("additionalProperties":false})");
  EXPECT_EQ(chat_error(strict_tool(
                R"({"type":"object","properties":{"a":{"type":"string"}},"required":[]})")),
            "Required properties must match all properties in the object");
}

TEST(ChatFaults, StrictDefsStayWhereReferencesPoint) {
  EXPECT_EQ(parameters_of(read_chat(strict_tool(
                R"({"type":"object","properties":{"a":{"$ref":"#/$defs/q"}},"required":["a"],)"
                R"("$defs":{"q":{"type":"object","properties":{"z":{"type":"string"}}}}})"))),
            R"({"type":"object","properties":{"a":{"$ref":"#/$defs/q"}},)"
            R"("additionalProperties":false,"required":["a"],"$defs":{"q":{"type":"object",)"
            R"("properties":{"z":{"type":"string"}},"additionalProperties":false}}})");
}

TEST(ChatFaults, StrictKeywordsThatRestrictAreKept) {
  EXPECT_EQ(parameters_of(read_chat(strict_tool(
                R"({"type":"object","properties":{)"
                R"("a":{"type":"string","minLength":1,"const":"x","title":"T"},)"
                R"("b":{"type":"array","minItems":1,"items":{"type":"number","enum":[1,2]}},)"
                R"("c":{"type":["string","null"],"enum":["x",null]}},"required":["a","b","c"]})"))),
            R"({"type":"object","properties":{)"
            R"("a":{"type":"string","minLength":1,"const":"x"},)"
            R"("b":{"type":"array","items":{"type":"number","enum":[1,2]},"minItems":1},)"
            R"("c":{"type":["string","null"],"enum":["x",null]}},)"
            R"("additionalProperties":false,"required":["a","b","c"]})");
}

TEST(ChatFaults, SeedNegativeIsTakenModulo64Bits) {
  EXPECT_EQ(read_chat(chat(R"("seed":-1)")).inference.seed, UINT64_MAX);
  EXPECT_EQ(read_chat(chat(R"("seed":7)")).inference.seed, 7u);
  EXPECT_EQ(chat_error(chat(R"("seed":9223372036854775808)")),
            "Invalid seed value, the valid range of seed is [0, 2^63)");
}

TEST(ChatFaults, JsonSchemaFenceIsToBeStripped) {
  const auto request = read_chat(chat(
      R"("response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object"}}})"));
  EXPECT_TRUE(request.parsing.strip_json_fence);
  EXPECT_FALSE(request.parsing.parse_json_output);
}

TEST(ChatFaults, EmptyConversationIsRefused) {
  EXPECT_EQ(chat_error(R"("messages":[{"role":"system","content":""}])"), "Empty input messages");
}

}  // namespace
}  // namespace fathom::codec
