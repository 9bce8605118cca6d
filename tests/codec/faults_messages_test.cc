// What Messages clients need where deepseek-recipe 0.2.0 has a fault.  Each test begins with the
// kind of the fault (recipe.md 7.3).
#include "codec/json_text.h"
#include "codec/request_fixture.h"

namespace fathom::codec {
namespace {

std::string with(std::string_view more) { return std::string(kUserX) + "," + std::string(more); }

TEST(MessagesFaults, CustomToolTypeIsAClientTool) {
  const auto request = read_messages(
      with(R"("tools":[{"type":"custom","name":"f","input_schema":{"type":"object"}}])"));
  EXPECT_EQ(request.conversation.tools.at(0).name, "f");
}

TEST(MessagesFaults, AnyNotEnforcedNoMore) {
  const auto request = read_messages(with(
      R"("tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"any"})"));
  EXPECT_EQ(request.conversation.tool_choice, ToolChoice::kRequired);
  EXPECT_EQ(request.inference.output_constraint->kind, OutputConstraint::Kind::kToolCallRequired);
}

TEST(MessagesFaults, PrefillIsContinued) {
  const auto request = read_messages(R"("messages":[{"role":"user","content":"a"},
      {"role":"assistant","content":"b"}],"thinking":{"type":"disabled"})");
  EXPECT_TRUE(text_of_prompt(request.conversation).ends_with("<｜Assistant｜></think>b"));
  EXPECT_EQ(request.parsing.thinking_initial_stage, ParsingOptions::Stage::kContentContinuation);
}

TEST(MessagesFaults, TextDocumentReachesTheModel) {
  const auto request = read_messages(R"("messages":[{"role":"user","content":[
      {"type":"document","title":"T","source":{"type":"text","media_type":"text/plain","data":"hello"}},
      {"type":"document","source":{"type":"content","content":"c"}},
      {"type":"document","source":{"type":"content","content":[{"type":"text","text":"d"}]}}]}])");
  ASSERT_EQ(request.conversation.messages.size(), 3u);
  EXPECT_EQ(request.conversation.messages[0].content, "T\nhello");
  EXPECT_EQ(request.conversation.messages[1].content, "c");
  EXPECT_EQ(request.conversation.messages[2].content, "d");
}

TEST(MessagesFaults, DocumentDroppedNoMoreButRefused) {
  EXPECT_EQ(messages_error(R"("messages":[{"role":"user","content":[{"type":"document",
      "source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}]}])"),
            "messages.0.content[0]: a document of type application/pdf cannot be read here. Pass "
            "the text of the document instead.");
}

TEST(MessagesFaults, RedactedThinkingIsSkipped) {
  const auto request = read_messages(R"("messages":[{"role":"user","content":"a"},
      {"role":"assistant","content":[{"type":"redacted_thinking","data":"x"},
        {"type":"text","text":"b"}]},{"role":"user","content":"c"}])");
  EXPECT_EQ(request.conversation.messages.at(1).content, "b");
  EXPECT_EQ(request.conversation.messages[1].reasoning_content, "");
}

TEST(MessagesFaults, StructuredOutputIgnoredNoMore) {
  for (const char* field :
       {R"("output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}})",
        R"("output_format":{"type":"json_schema","schema":{"type":"object"}})"}) {
    const auto request = read_messages(with(field));
    EXPECT_EQ(request.conversation.response_format.kind, ResponseFormat::Kind::kJsonSchema);
    EXPECT_EQ(request.inference.output_constraint->text, R"({"type":"object"})");
  }
  EXPECT_EQ(messages_error(with(R"("output_config":{"format":{"type":"zz"}})"))
                .find("invalid request body: output_config.format.type: unknown variant `zz`"),
            0u);
}

TEST(MessagesFaults, StrictIgnoredNoMore) {
  const auto request = read_messages(with(
      R"("tools":[{"name":"f","strict":true,"input_schema":{"type":"object",
         "properties":{"a":{"type":"string","title":"T"}},"required":["a"]}}])"));
  EXPECT_EQ(write_json(request.conversation.tools.at(0).parameters, JsonStyle::kCompact),
            R"({"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false,)"
            R"("required":["a"]})");
}

TEST(MessagesFaults, SplitResultsAreOneAnswer) {
  const auto request = read_messages(R"("messages":[{"role":"user","content":"a"},
      {"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}},
        {"type":"tool_use","id":"2","name":"f","input":{}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"A"}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"2","content":"B"}]}])");
  ASSERT_EQ(request.conversation.messages.size(), 4u);
  EXPECT_EQ(request.conversation.messages[3].content, "B");
}

// Not of 7.3: an answer may go on after its calls, and comes back in the history of the client.
TEST(MessagesFaults, TextAfterCallIsTextOfTheAnswer) {
  const auto request = read_messages(R"("messages":[{"role":"user","content":"a"},
      {"role":"assistant","content":[{"type":"text","text":"b"},
        {"type":"tool_use","id":"1","name":"f","input":{}},{"type":"text","text":"c"}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"A"}]}])");
  ASSERT_EQ(request.conversation.messages.size(), 3u);
  EXPECT_EQ(request.conversation.messages[1].content, "b\n\nc");
  EXPECT_EQ(request.conversation.messages[1].tool_calls.size(), 1u);
  EXPECT_TRUE(messages_error(R"("messages":[{"role":"user","content":"a"},
      {"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}},
        {"type":"text","text":"c"}]}])")
                  .starts_with("messages.1:`tool_use` ids were found without"));
}

TEST(MessagesFaults, ServerToolFallbackNamesTheType) {
  EXPECT_EQ(messages_error(with(R"("tools":[{"type":"bash_20250124","name":"bash"}])")),
            "tools[0]: the tool type 'bash_20250124' has no definition here. Declare the tool with "
            "name, description and input_schema instead.");
}

TEST(MessagesFaults, Base64LinesAreAccepted) {
  const auto request = read_messages(R"("messages":[{"role":"user","content":[{"type":"image",
      "source":{"type":"base64","media_type":"image/png","data":"iVBO Rw0K\nGgo="}}]}])");
  EXPECT_EQ(request.conversation.messages.at(0).image_sources.at(0).data,
            "data:image/png;base64,iVBORw0KGgo=");
}

TEST(MessagesFaults, MediaTypeCaseDoesNotMatter) {
  const auto request = read_messages(R"("messages":[{"role":"user","content":[{"type":"image",
      "source":{"type":"base64","media_type":"IMAGE/Jpg","data":"iVBORw0KGgo="}}]}])");
  EXPECT_EQ(request.conversation.messages.at(0).image_sources.at(0).data,
            "data:image/jpeg;base64,iVBORw0KGgo=");
}

}  // namespace
}  // namespace fathom::codec
