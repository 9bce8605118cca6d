// Details of deepseek-recipe 0.2.0 that its recorded vectors do not hold: which error wins, and
// what V4 reads in another way.
#include "codec/json_text.h"
#include "codec/request_fixture.h"

namespace fathom::codec {
namespace {

TEST(RequestOrder, SchemasOfToolsAreCheckedBeforeTheirNamesAreCompared) {
  EXPECT_EQ(
      messages_error(std::string(kUserX) +
                     R"(,"tools":[{"name":"g","input_schema":{}},{"name":"g"}])"),
      "Invalid schema for function 'g': schema must be a JSON Schema of 'type: \"object\"', got "
      "'type: null'.");
  EXPECT_EQ(chat_error(std::string(kUserX) +
                       R"(,"tools":[{"type":"function","function":{"name":"f","strict":true,
                           "parameters":{"type":"object","properties":{"a":{}}}}},
                         {"type":"function","function":{"name":"f"}}])"),
            "Invalid tool parameters schema : one of `type`, `anyOf`, `$ref` field is required");
}

TEST(RequestOrder, APrefixIsComparedWithToolsLast) {
  const std::string prefix =
      R"("messages":[{"role":"user","content":"json"},
         {"role":"assistant","content":"{","prefix":true}])";
  EXPECT_EQ(chat_error(prefix + R"(,"tools":[{"type":"function","function":{"name":"f"}},
                                            {"type":"function","function":{"name":"f"}}])"),
            "Tool names must be unique.");
  EXPECT_EQ(chat_error(prefix + R"(,"tools":[{"type":"function","function":{"name":"f"}}])"),
            "Function call should not be used with prefix");
}

TEST(RequestV4, NamespacesAreJoinedByUnderscoresAndToolSearchIsUnknown) {
  const auto request = read(Protocol::kResponses, R"({"model":"v4","input":[
      {"role":"user","content":"x"},
      {"type":"tool_search_call","call_id":"a","arguments":{"q":"z"}},
      {"type":"tool_search_output","call_id":"a","tools":[{"type":"function","name":"g"}]}],
    "tools":[{"type":"namespace","name":"N","tools":[{"type":"function","name":"f"}]},
             {"type":"tool_search","execution":"client"},{"type":"custom","name":"apply_patch"}]})");
  EXPECT_EQ(request.conversation.messages.size(), 1u);
  ASSERT_EQ(request.conversation.tools.size(), 2u);
  EXPECT_EQ(request.conversation.tools[0].name, "N__f");
  EXPECT_EQ(request.conversation.tools[1].description->size(), 2903u);
  EXPECT_NE(request.conversation.tools[1].description->find("envelope:\n*** Begin"),
            std::string::npos);
}

TEST(RequestV4, EmptySystemMessagesOfMessagesAreDropped) {
  const auto request = read(Protocol::kMessages, R"({"model":"v4","messages":[
      {"role":"system","content":""},{"role":"user","content":"x"},
      {"role":"system","content":"n"}]})");
  ASSERT_EQ(request.conversation.messages.size(), 2u);
  EXPECT_EQ(request.conversation.messages[1].content, "<system-reminder>\nn\n</system-reminder>");
}

TEST(ResponsesSearch, AToolWithoutParametersIsNullInTheResultAndEmptyWhereItIsDeclared) {
  const auto request = read_responses(R"("input":[{"role":"user","content":"x"},
      {"type":"tool_search_call","call_id":"a","arguments":{"q":"z"}},
      {"type":"tool_search_output","call_id":"a","tools":[{"type":"function","name":"g"}]}])");
  const auto& messages = request.conversation.messages;
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(
      messages[2].content,
      R"([{"type":"function","name":"g","description":null,"parameters":null,"strict":null}])");
  EXPECT_EQ(write_json(messages[3].tools.at(0).parameters, JsonStyle::kCompact), "{}");
}

}  // namespace
}  // namespace fathom::codec
