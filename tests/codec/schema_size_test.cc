// Schemas that answers are held to have a limit, which acts before anything is done with them; what
// nobody is held to has none.
#include <gtest/gtest.h>

#include "codec/request_fixture.h"

namespace fathom::codec {
namespace {

constexpr size_t kLimit = 100;

ConvertOptions limited() {
  ConvertOptions options = test_options();
  options.max_schema_bytes = kLimit;
  return options;
}

// A schema of `bytes` bytes.
std::string schema(size_t bytes) {
  const std::string begin = R"({"type":"object","title":")", end = R"("})";
  return begin + std::string(bytes - begin.size() - end.size(), 'x') + end;
}

std::string chat_body(const std::string& fields) {
  return R"({"model":"m","messages":[{"role":"user","content":"x"}],)" + fields + "}";
}

std::string format(const std::string& schema, const char* strict) {
  return R"("response_format":{"type":"json_schema","json_schema":{"name":"s","strict":)" +
         std::string(strict) + R"(,"schema":)" + schema + "}}";
}

std::string tool(const std::string& name, const std::string& schema, const char* strict) {
  return R"({"type":"function","function":{"name":")" + name + R"(","strict":)" + strict +
         R"(,"parameters":)" + schema + "}}";
}

constexpr Protocol kChat = Protocol::kChatCompletions;

TEST(SchemaSize, ResponseFormatsOfEachProtocolAreLimited) {
  const std::string small = schema(kLimit), large = schema(kLimit + 1);
  const auto responses = [](const std::string& schema) {
    return R"({"model":"m","input":"x","text":{"format":{"type":"json_schema","name":"s","schema":)" +
           schema + "}}}";
  };
  const auto messages = [](const std::string& schema) {
    return chat_body(R"("max_tokens":5,"output_config":{"format":{"type":"json_schema","schema":)" +
                     schema + "}}");
  };
  const std::string wanted =
      "Invalid json schema: it has more than 100 bytes, the most that an answer can be held to.";
  read(kChat, chat_body(format(small, "false")), limited());
  EXPECT_EQ(error_of(kChat, chat_body(format(large, "false")), limited()), wanted);
  EXPECT_EQ(error_of(kChat, chat_body(format(large, "true")), limited()), wanted);
  read(Protocol::kResponses, responses(small), limited());
  EXPECT_EQ(error_of(Protocol::kResponses, responses(large), limited()), wanted);
  read(Protocol::kMessages, messages(small), limited());
  EXPECT_EQ(error_of(Protocol::kMessages, messages(large), limited()), wanted);
  read(kChat, chat_body(format(large, "false")));  // no limit
}

TEST(SchemaSize, ToolsAreLimitedTogetherWhereACallIsHeldToThem) {
  const std::string half = schema(60), strict = tool("a", half, "true");
  const std::string loose = tool("b", half, "false");
  const std::string wanted =
      "Invalid schema for function 'b': together with those of the tools before, it has more than "
      "100 bytes, the most that an answer can be held to.";
  read(kChat, chat_body("\"tools\":[" + tool("a", schema(1000), "false") + "]"), limited());
  read(kChat, chat_body("\"tools\":[" + loose + R"(],"tool_choice":"required")"), limited());
  // Those that the choice leaves out do not count.
  read(kChat,
       chat_body("\"tools\":[" + tool("a", schema(1000), "false") + "," + loose +
                 R"(],"tool_choice":{"type":"function","function":{"name":"b"}})"),
       limited());
  EXPECT_EQ(error_of(kChat,
                     chat_body("\"tools\":[" + tool("a", half, "false") + "," + loose +
                               R"(],"tool_choice":"required")"),
                     limited()),
            wanted);
  EXPECT_EQ(error_of(kChat, chat_body("\"tools\":[" + strict + "," + loose + "]"), limited()),
            wanted);
  read(kChat, chat_body("\"tools\":[" + strict + "," + loose + R"(],"tool_choice":"none")"),
       limited());
}

}  // namespace
}  // namespace fathom::codec
