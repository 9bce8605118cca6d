// What Responses clients need where deepseek-recipe 0.2.0 has a fault.  Each test begins with the
// kind of the fault (recipe.md 7.3).
#include "codec/request_fixture.h"

namespace fathom::codec {
namespace {

TEST(ResponsesFaults, StateIgnoredNoMore) {
  for (const char* field : {R"("previous_response_id":"r")", R"("conversation":"c")"}) {
    EXPECT_NE(responses_error(std::string(R"("input":"x",)") + field)
                  .find("is not supported: responses are not stored here"),
              std::string::npos);
  }
  EXPECT_EQ(
      read_responses(R"("input":"x","previous_response_id":null)").conversation.messages.size(),
      1u);
  EXPECT_EQ(responses_error(R"("input":[{"type":"item_reference","id":"msg_1"},{"role":"user",)"
                            R"("content":"x"}])")
                .find("input[0]: item_reference is not supported"),
            0u);
}

TEST(ResponsesFaults, EmptyConversationIsRefused) {
  EXPECT_EQ(responses_error(R"("input":[{"type":"web_search_call","id":"w"}])")
                .find("No message is left of the input"),
            0u);
}

TEST(ResponsesFaults, RefusalBlockIsTextOfTheAssistant) {
  const auto request = read_responses(R"("input":[{"role":"user","content":"x"},
      {"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}])");
  EXPECT_EQ(request.conversation.messages.at(1).content, "no");
}

TEST(ResponsesFaults, TextDocumentReachesTheModel) {
  const auto request = read_responses(R"("input":[{"role":"user","content":[{"type":"input_file",
      "filename":"a.txt","file_data":"data:text/plain;base64,aGVsbG8="}]}])");
  EXPECT_EQ(request.conversation.messages.at(0).content, "a.txt\nhello");
}

TEST(ResponsesFaults, DocumentDroppedNoMoreButRefused) {
  EXPECT_EQ(
      responses_error(R"("input":[{"role":"user","content":[{"type":"input_text","text":"a"},
      {"type":"input_file","file_data":"data:application/pdf;base64,AAAA"}]}])"),
      "input[0].content[1]: a file of type application/pdf cannot be read here. Pass the text "
      "of the document instead.");
  EXPECT_EQ(responses_error(
                R"("input":[{"role":"user","content":[{"type":"input_file","file_id":"f"}]}])"),
            "input[0].content[0]: a file given by its id cannot be read here. Pass the text of the "
            "document instead.");
  const auto request = read_responses(R"("input":[{"role":"user","content":[{"type":"input_file",
      "file_data":"data:image/png;base64,AAAA"}]}])");
  EXPECT_EQ(request.conversation.messages.at(0).image_sources.size(), 1u);
}

constexpr std::string_view kTools = R"("input":"x","reasoning":{"effort":"none"},"tools":[
    {"type":"function","name":"f"},
    {"type":"namespace","name":"N","tools":[{"type":"function","name":"g"}]}],)";

TEST(ResponsesFaults, AllowedToolsKeepsOnlyThose) {
  const auto request = read_responses(std::string(kTools) +
                                      R"("tool_choice":{"type":"allowed_tools","mode":"auto",
                        "tools":[{"type":"function","name":"f"}]})");
  ASSERT_EQ(request.conversation.tools.size(), 1u);
  EXPECT_EQ(request.conversation.tools[0].name, "f");
  EXPECT_EQ(request.conversation.tool_choice, ToolChoice::kAuto);
}

TEST(ResponsesFaults, NamespaceChoiceFindsAFunctionWithin) {
  for (const char* choice :
       {R"({"type":"function","name":"g"})", R"({"type":"function","name":"g","namespace":"N"})",
        R"({"type":"function","name":"N::g"})"}) {
    const auto request =
        read_responses(std::string(kTools) + R"("tool_choice":)" + std::string(choice));
    ASSERT_EQ(request.conversation.tools.size(), 1u) << choice;
    EXPECT_EQ(request.conversation.tools[0].name, "N::g");
    EXPECT_EQ(request.conversation.tool_choice, ToolChoice::kRequired);
  }
}

TEST(ResponsesFaults, ParallelInterleaveIsMatchedByCallId) {
  const auto request = read_responses(R"("input":[{"role":"user","content":"x"},
      {"type":"function_call","call_id":"b","name":"f","arguments":"{}"},
      {"type":"reasoning","content":[{"type":"reasoning_text","text":"r"}]},
      {"type":"function_call","call_id":"a","name":"f","arguments":"{}"},
      {"type":"function_call_output","call_id":"a","output":"A"},
      {"type":"function_call_output","call_id":"b","output":"B"}])");
  const auto& messages = request.conversation.messages;
  ASSERT_EQ(messages.size(), 5u);
  EXPECT_EQ(messages[1].tool_calls.at(0).id, "b");
  EXPECT_EQ(messages[2].content, "B");
  EXPECT_EQ(messages[3].reasoning_content, "r");
  EXPECT_EQ(messages[3].tool_calls.at(0).id, "a");
  EXPECT_EQ(messages[4].content, "A");
}

TEST(ResponsesFaults, ImagePathNamesTheBlock) {
  EXPECT_EQ(responses_error(
                R"("input":[{"role":"user","content":[{"type":"input_image","image_url":"zz"}]}])"),
            "input[0].content[0]: Unsupported image_url format");
}

}  // namespace
}  // namespace fathom::codec
