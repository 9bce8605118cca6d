// What other servers do and this one does not is refused in the words of the API that was asked.
#include "server/known_fields.h"

#include "server/server_fixture.h"

namespace fathom::server {
namespace {

class KnownFieldsTest : public ServerTest {
 protected:
  // A body of the path with `field` (a member as JSON) beside what is needed.
  static std::string body(std::string_view path, std::string_view field) {
    const std::string_view start =
        path == "/v1/completions" ? R"("prompt":"a",)"
        : path == "/v1/responses" ? R"("input":"a",)"
                                  : R"("max_tokens":9,"messages":[{"role":"user","content":"a"}],)";
    return "{" + std::string(start) + std::string(field) + "}";
  }
};

TEST_F(KnownFieldsTest, WhatIsNotDoneIsRefusedByName) {
  say("x");
  start();
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"/v1/completions", "suffix", R"("b")"},
      {"/v1/completions", "best_of", "3"},
      {"/v1/completions", "use_beam_search", "true"},
      {"/v1/completions", "prompt_logprobs", "1"},
      {"/v1/completions", "truncate_prompt_tokens", "5"},
      {"/v1/completions", "include_stop_str_in_output", "true"},
      {"/v1/chat/completions", "best_of", "2"},
      {"/v1/chat/completions", "echo", "true"},
      {"/v1/chat/completions", "functions", R"([{"name":"f"}])"},
      {"/v1/chat/completions", "function_call", R"({"name":"f"})"},
      {"/v1/chat/completions", "modalities", R"(["text","audio"])"},
      {"/v1/chat/completions", "audio", R"({"voice":"alloy"})"},
      {"/v1/chat/completions", "web_search_options", R"({"search_context_size":"low"})"},
      {"/v1/chat/completions", "add_generation_prompt", "false"},
      {"/v1/chat/completions", "continue_final_message", "true"},
      {"/v1/chat/completions", "chat_template", R"("{{x}}")"},
      {"/v1/responses", "background", "true"},
      {"/v1/responses", "conversation", R"("c")"},
      {"/v1/responses", "prompt", R"({"id":"p"})"},
  };
  for (const auto& [path, name, value] : cases) {
    const std::string field = "\"" + std::string(name) + "\":" + value;
    const auto reply = post(path, body(path, field));
    EXPECT_EQ(reply.status, 400) << path << field;
    EXPECT_EQ(text_at(reply.body, "error.code"), "unsupported_parameter") << reply.body;
    EXPECT_EQ(text_at(reply.body, "error.type"), "invalid_request_error");
    EXPECT_EQ(text_at(reply.body, "error.param"), name);
    EXPECT_NE(text_at(reply.body, "error.message").find(name), std::string::npos);
  }
  const auto messages =
      post("/v1/messages", body("/v1/messages", R"("mcp_servers":[{"url":"http://x"}])"));
  EXPECT_EQ(messages.status, 400);
  EXPECT_EQ(text_at(messages.body, "type"), "error");
  EXPECT_EQ(text_at(messages.body, "error.type"), "invalid_request_error");
  EXPECT_NE(text_at(messages.body, "error.message").find("mcp_servers"), std::string::npos);
  EXPECT_EQ(engine_.num_open(), 0u);
}

TEST_F(KnownFieldsTest, ValuesThatAskForNothingPass) {
  say("x");
  start();
  const std::pair<const char*, const char*> cases[] = {
      {"/v1/completions",
       R"("suffix":"","best_of":2,"n":2,"use_beam_search":false,"prompt_logprobs":null)"},
      {"/v1/completions", R"("best_of":1,"suffix":null,"user":"u")"},
      {"/v1/chat/completions",
       R"("functions":[],"function_call":"none","modalities":["text"],"audio":null,"echo":false,)"
       R"("add_generation_prompt":true,"continue_final_message":false,"metadata":{"a":"b"},)"
       R"("service_tier":"auto","store":true,"prediction":{"type":"content","content":"a"})"},
      {"/v1/responses", R"("background":false,"conversation":null,"truncation":"auto")"},
      {"/v1/messages", R"("mcp_servers":[],"container":null,"service_tier":"auto")"},
  };
  for (const auto& [path, fields] : cases) {
    const auto reply = post(path, body(path, fields));
    EXPECT_EQ(reply.status, 200) << path << fields << reply.body;
  }
}

TEST_F(KnownFieldsTest, TemplateArgumentsChooseThinking) {
  say("x");
  start();
  const auto prompt = [this](const std::string& fields) {
    const auto reply = post(kChat, body(kChat, fields));
    EXPECT_EQ(reply.status, 200) << fields << reply.body;
    static int64_t count = 0;
    return engine_.request(++count).prompt;
  };
  const auto off = prompt(R"("thinking":{"type":"disabled"})");
  const auto on = prompt(R"("thinking":{"type":"enabled"})");
  EXPECT_NE(on, off);
  EXPECT_EQ(prompt(R"("chat_template_kwargs":{"thinking":true})"), on);
  EXPECT_EQ(prompt(R"("chat_template_kwargs":{"enable_thinking":false})"), off);
  EXPECT_EQ(prompt(R"("chat_template_kwargs":{"thinking":true},"thinking":{"type":"disabled"})"),
            off);
  EXPECT_EQ(prompt(R"("chat_template_kwargs":{"thinking":true,"reasoning_effort":"max"})"),
            prompt(R"("thinking":{"type":"enabled"},"reasoning_effort":"max")"));
  for (const char* wrong : {R"({"thinking":1})", R"({"tone":"kind"})", R"("x")"}) {
    const auto reply = post(kChat, body(kChat, R"("chat_template_kwargs":)" + std::string(wrong)));
    EXPECT_EQ(reply.status, 400) << wrong;
    EXPECT_NE(text_at(reply.body, "error.message").find("chat_template_kwargs"), std::string::npos);
  }
}

TEST_F(KnownFieldsTest, AFieldOfAWrongTypeIsTheParameter) {
  start();
  const auto reply = post("/v1/completions", R"({"prompt":"a","n":"two"})");
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(text_at(reply.body, "error.param"), "n");
}

}  // namespace
}  // namespace fathom::server
