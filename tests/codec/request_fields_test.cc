// Every field of docs/spec/recipe.md 2.1, 2.6 and 2.7, a row each: what it changes, that it changes
// nothing, or the error that it gets.
#include <set>
#include <span>

#include "codec/json_text.h"
#include "codec/output/events_responses.h"
#include "codec/request_fixture.h"

namespace fathom::codec {
namespace {

// What a field does to a request that is fine without it.
struct Row {
  enum class Want { kTaken, kIgnored, kEchoed, kRefused };
  const char* fields;  // JSON members
  Want want;
  const char* error = "";  // kRefused: the text, or its beginning if it ends in ...
};

constexpr Row taken(const char* fields) { return {fields, Row::Want::kTaken}; }
constexpr Row ignored(const char* fields) { return {fields, Row::Want::kIgnored}; }
constexpr Row echoed(const char* fields) { return {fields, Row::Want::kEchoed}; }
constexpr Row refused(const char* fields, const char* error) {
  return {fields, Row::Want::kRefused, error};
}

#define FATHOM_RANGE(name, range) "Invalid " name " value, the valid range of " name " is " range

const Row kChatRows[] = {
    taken(R"("frequency_penalty":1.5)"),
    refused(R"("frequency_penalty":2.1)", FATHOM_RANGE("frequency_penalty", "[-2, 2]")),
    taken(R"("presence_penalty":-2)"),
    refused(R"("presence_penalty":-2.1)", FATHOM_RANGE("presence_penalty", "[-2, 2]")),
    taken(R"("max_tokens":7)"),
    refused(R"("max_tokens":0)", FATHOM_RANGE("max_tokens", "[1, 393216]")),
    refused(R"("max_tokens":393217)", FATHOM_RANGE("max_tokens", "[1, 393216]")),
    refused(R"("max_tokens":-1)", "invalid request body: max_tokens: ..."),
    refused(R"("max_tokens":1.5)", "invalid request body: max_tokens: ..."),
    taken(R"("max_completion_tokens":7)"),
    ignored(R"("n":1)"),
    refused(R"("n":2)", "Invalid n value (currently only n = 1 is supported)"),
    taken(R"("seed":0)"),
    taken(R"("seed":-5)"),
    refused(R"("seed":9223372036854775808)", FATHOM_RANGE("seed", "[0, 2^63)")),
    refused(R"("seed":"1")", "invalid request body: seed: ..."),
    taken(R"("stop":"a")"),
    taken(R"("stop":["a","b"])"),
    refused(R"("stop":"")",
            "Invalid 'stop': empty string. Expected a string with minimum length 1, but got an "
            "empty string instead."),
    refused(R"("stop":["a",""])",
            "Invalid 'stop[1]': empty string. Expected a string with minimum length 1, but got an "
            "empty string instead."),
    refused(R"("stop":["1","2","3","4","5","6","7","8","9","a","b","c","d","e","f","g","h"])",
            "Stop string array too long: 17"),
    taken(R"("stream":true)"),
    taken(R"("stream":true,"stream_options":{"include_usage":true})"),
    refused(R"("stream_options":{"include_usage":true})",
            "stream_options should be set along with stream = true"),
    taken(R"("temperature":0.5)"),
    refused(R"("temperature":2.1)", FATHOM_RANGE("temperature", "[0, 2]")),
    refused(R"("temperature":-0.1)", FATHOM_RANGE("temperature", "[0, 2]")),
    ignored(R"("top_p":0.5)"),  // V4.1 without thinking: 1, unless the client's value is kept
    refused(R"("top_p":0)", FATHOM_RANGE("top_p", "(0, 1.0]")),
    refused(R"("top_p":1.1)", FATHOM_RANGE("top_p", "(0, 1.0]")),
    taken(R"("logprobs":true)"),
    taken(R"("logprobs":true,"top_logprobs":20)"),
    refused(R"("top_logprobs":1)",
            "Invalid top_logprobs and logprobs value, logprobs must be set to true if top_logprobs "
            "is used."),
    refused(R"("logprobs":true,"top_logprobs":21)",
            "Invalid top_logprobs value, the valid range of top_logprobs is [0, 20]."),
    ignored(R"("response_format":{"type":"text"})"),
    taken(R"("response_format":{"type":"json_schema","json_schema":{"schema":{}}})"),
    taken(R"("response_format":{"type":"regex","regex":"a+"})"),
    refused(R"("response_format":{"type":"json_object"})",
            "Prompt must contain the word 'json' in some form to use 'response_format' of type "
            "'json_object'."),
    refused(R"("response_format":{"type":"xml"})", "invalid request body: response_format.type..."),
    refused(R"("response_format":{"type":"json_schema","json_schema":{}})",
            "invalid request body: response_format.json_schema: missing field `schema`"),
    taken(R"("tools":[{"type":"function","function":{"name":"f"}}])"),
    refused(R"("tools":[{"type":"web","function":{"name":"f"}}])",
            "invalid request body: tools[0].type..."),
    ignored(R"("tool_choice":"required")"),  // without tools
    refused(R"("tool_choice":"must")", "invalid request body: tool_choice..."),
    taken(R"("reasoning_effort":"max")"),
    taken(R"("reasoning_effort":37)"),
    refused(R"("reasoning_effort":"much")", "invalid request body: reasoning_effort..."),
    refused(R"("reasoning_effort":101)", "invalid request body: reasoning_effort..."),
    taken(R"("thinking":{"type":"enabled"})"),
    taken(R"("thinking":{"type":"adaptive","budget_tokens":5})"),
    ignored(R"("thinking":{"type":"disabled","budget_tokens":5})"),
    refused(R"("thinking":{"type":"perhaps"})", "invalid request body: thinking.type..."),
    taken(R"("parallel_tool_calls":false)"),  // ignored by the package
    ignored(R"("parallel_tool_calls":true)"),
    refused(R"("parallel_tool_calls":1)", "invalid request body: parallel_tool_calls: ..."),
    ignored(R"("user":"u")"),
    ignored(R"("service_tier":"flex")"),
    ignored(R"("metadata":{"a":"b"})"),
    ignored(R"("store":true,"logit_bias":{},"prediction":null,"modalities":["text"])"),
    ignored(R"("whatever":[1,{"x":null}])"),
    refused(R"("model":"nope")",
            "The supported API model names are DeepSeek-V4-Pro, DeepSeek-V4.1-Flash, m, v4, but "
            "you passed nope."),
    refused(R"("messages":[])", "Empty input messages"),
    refused(R"("messages":null)", "invalid request body: messages..."),
};

const Row kResponsesRows[] = {
    taken(R"("input":[{"role":"user","content":"y"}])"),
    refused(R"("input":[])", "Input items array must not be empty"),
    refused(R"("input":null)", "Either input or instructions must be provided"),
    refused(R"("input":[{"content":"y"}])", "invalid request body: input[0]..."),
    taken(R"("instructions":"i")"),
    echoed(R"("instructions":"")"),
    taken(R"("max_output_tokens":7)"),
    refused(R"("max_output_tokens":0)", FATHOM_RANGE("max_tokens", "[1, 393216]")),
    taken(R"("temperature":0.5)"),
    refused(R"("temperature":2.1)", FATHOM_RANGE("temperature", "[0, 2]")),
    echoed(R"("top_p":0.5)"),
    refused(R"("top_p":0)", FATHOM_RANGE("top_p", "(0, 1.0]")),
    taken(R"("top_logprobs":3)"),
    refused(R"("top_logprobs":21)",
            "Invalid top_logprobs value, the valid range of top_logprobs is [0, 20]."),
    taken(R"("stream":true)"),
    ignored(R"("text":{"format":{"type":"text"}})"),
    taken(R"("text":{"format":{"type":"json_schema","name":"n","schema":{}}})"),
    refused(R"("text":{"format":{"type":"json_object"}})",
            "Response input messages must contain the word 'json' in some form to use "
            "'text.format' of type 'json_object'."),
    echoed(R"("text":{"verbosity":"low"})"),
    refused(R"("text":{"verbosity":"loud"})", "invalid request body: text.verbosity..."),
    echoed(R"("user":"u")"),
    taken(R"("reasoning":{"effort":"high"})"),
    echoed(R"("reasoning":{"summary":"concise"})"),
    refused(R"("reasoning":{"summary":"long"})", "invalid request body: reasoning.summary..."),
    ignored(R"("thinking":{"type":"enabled"})"),
    taken(R"("tools":[{"type":"function","name":"f"}])"),
    taken(R"("tools":[{"type":"custom","name":"apply_patch"}])"),
    refused(R"("tools":[{"type":"custom","name":"x"}])",
            "Unsupported custom tool: 'x'. Only 'apply_patch' is supported."),
    echoed(R"("tools":[{"type":"web_search"}])"),
    ignored(R"("tools":[{"type":"image_generation"}])"),
    taken(R"("tool_choice":"none")"),
    refused(R"("tool_choice":"must")", "invalid request body: tool_choice..."),
    refused(R"("previous_response_id":"r")", "previous_response_id is not supported..."),
    refused(R"("conversation":"c")", "conversation is not supported..."),
    ignored(R"("store":true)"),
    ignored(R"("metadata":{"a":"b"})"),
    ignored(R"("include":["x"])"),
    taken(R"("parallel_tool_calls":false)"),  // ignored by the package
    ignored(R"("parallel_tool_calls":true)"),
    refused(R"("parallel_tool_calls":1)", "invalid request body: parallel_tool_calls: ..."),
    ignored(R"("truncation":"auto")"),
    ignored(R"("background":false)"),
    ignored(R"("prompt":{"id":"p"})"),
    ignored(R"("whatever":1)"),
};

const Row kMessagesRows[] = {
    taken(R"("max_tokens":7)"),
    refused(R"("max_tokens":0)", FATHOM_RANGE("max_tokens", "[1, 393216]")),
    taken(R"("max_tokens":1000000)"),  // lowered to the bound
    taken(R"("system":"s")"),
    taken(R"("system":[{"type":"text","text":"s"}])"),
    refused(R"("system":[{"type":"image"}])", "invalid request body: system[0].type..."),
    taken(R"("temperature":0.5)"),
    refused(R"("temperature":2.1)", FATHOM_RANGE("temperature", "[0, 2]")),
    ignored(R"("top_p":0.5)"),
    refused(R"("top_p":0)", FATHOM_RANGE("top_p", "(0, 1.0]")),
    taken(R"("stop_sequences":["a"])"),
    refused(R"("stop_sequences":["a",""])",
            "Invalid 'stop[1]': empty string. Expected a string with minimum length 1, but got an "
            "empty string instead."),
    refused(R"("stop_sequences":"a")", "invalid request body: stop_sequences..."),
    taken(R"("stream":true)"),
    taken(R"("tools":[{"name":"f","input_schema":{"type":"object"}}])"),
    refused(R"("tools":[{"name":"f"}])", "Invalid schema for function 'f': ..."),
    refused(R"("tools":[{"type":"web_search_20250305","name":"w"}])",
            "tools[0]: server tools are not supported"),
    refused(R"("tools":[{"name":"f","input_schema":{"type":"object"},"defer_loading":true}])",
            "tools: at least one tool must have defer_loading=false. All tools cannot be "
            "deferred."),
    ignored(R"("tool_choice":{"type":"auto"})"),
    refused(R"("tool_choice":{"type":"must"})", "invalid request body: tool_choice.type..."),
    taken(R"("tool_choice":{"type":"auto","disable_parallel_tool_use":true})"),  // the package: no
    ignored(R"("tool_choice":{"type":"auto","disable_parallel_tool_use":false})"),
    taken(R"("thinking":{"type":"enabled","budget_tokens":1024,"display":"omitted"})"),
    refused(R"("thinking":{"type":"perhaps"})", "invalid request body: thinking.type..."),
    taken(R"("output_config":{"effort":"max"})"),
    taken(R"("output_config":{"format":{"type":"json_schema","schema":{}}})"),
    taken(R"("output_format":{"type":"json_schema","schema":{}})"),
    ignored(R"("metadata":{"user_id":"u"})"),
    refused(R"("metadata":"u")", "invalid request body: metadata..."),
    ignored(R"("top_k":5)"),
    ignored(R"("service_tier":"auto")"),
    ignored(R"("container":"c")"),
    ignored(R"("mcp_servers":[])"),
    ignored(R"("whatever":1)"),
    refused(R"("messages":[])", "messages: at least one message is required"),
    refused(R"("messages":null)", "invalid request body: messages..."),
};

#undef FATHOM_RANGE

std::string base_of(Protocol protocol) {
  return protocol == Protocol::kResponses ? R"("input":"x")" : std::string(kUserX);
}

// A later key of the same name wins.
std::string body_of(Protocol protocol, std::string_view fields) {
  return R"({"model":"m",)" + base_of(protocol) + "," + std::string(fields) + "}";
}

bool is_same(const ConversationRequest& a, const ConversationRequest& b) {
  return a.conversation == b.conversation && a.inference == b.inference && a.stream == b.stream &&
         a.include_usage == b.include_usage &&
         a.parsing.stop_sequences == b.parsing.stop_sequences &&
         a.parsing.single_call == b.parsing.single_call &&
         a.namespaced_tools == b.namespaced_tools && a.custom_tools == b.custom_tools;
}

std::string echo_of(std::string_view body) {
  const ResponsesEcho e = responses_echo(*parse_json(body));
  return e.instructions + e.max_output_tokens + e.reasoning + e.temperature + e.text +
         e.tool_choice + e.tools + e.top_logprobs + e.top_p + e.user + e.parallel_tool_calls;
}

void check_row(Protocol protocol, const Row& row) {
  ConvertOptions options = test_options();
  options.default_thinking = false;
  const std::string body = body_of(protocol, row.fields);
  if (row.want == Row::Want::kRefused) {
    std::string_view wanted = row.error;
    std::string error = error_of(protocol, body, options);
    if (wanted.ends_with("...")) {
      wanted.remove_suffix(3);
      error = error.substr(0, wanted.size());
    }
    EXPECT_EQ(error, wanted) << body;
    return;
  }
  const std::string plain = body_of(protocol, R"("unknown":0)");
  const bool same = is_same(read(protocol, body, options), read(protocol, plain, options));
  EXPECT_EQ(same, row.want != Row::Want::kTaken) << body;
  if (protocol == Protocol::kResponses && row.want != Row::Want::kTaken) {
    EXPECT_EQ(echo_of(body) == echo_of(plain), row.want == Row::Want::kIgnored) << body;
  }
}

TEST(RequestFields, ChatCompletionsAreTakenIgnoredOrRefusedAsSpecified) {
  for (const Row& row : kChatRows) check_row(Protocol::kChatCompletions, row);
}

TEST(RequestFields, ResponsesAreTakenIgnoredOrRefusedAsSpecified) {
  for (const Row& row : kResponsesRows) check_row(Protocol::kResponses, row);
}

TEST(RequestFields, MessagesAreTakenIgnoredOrRefusedAsSpecified) {
  for (const Row& row : kMessagesRows) check_row(Protocol::kMessages, row);
}

TEST(RequestFields, NullMeansAbsent) {
  for (const auto& [protocol, rows] :
       {std::pair{Protocol::kChatCompletions, std::span<const Row>(kChatRows)},
        std::pair{Protocol::kResponses, std::span<const Row>(kResponsesRows)},
        std::pair{Protocol::kMessages, std::span<const Row>(kMessagesRows)}}) {
    std::set<std::string> names;
    for (const Row& row : rows) {
      const JsonValue fields = *parse_json("{" + std::string(row.fields) + "}");
      for (const auto& [name, value] : *fields.if_object()) names.insert(name);
    }
    for (const char* required : {"messages", "input", "model"}) names.erase(required);
    const auto plain = read(protocol, body_of(protocol, R"("unknown":0)"));
    for (const std::string& name : names) {
      const auto request = read(protocol, body_of(protocol, "\"" + name + "\":null"));
      EXPECT_TRUE(is_same(request, plain)) << name;
    }
  }
}

TEST(RequestFields, SamplingValuesFollowTheModelUnlessTheClientsAreKept) {
  struct Case {
    const char* fields;
    float temperature;
    float top_p;
  };
  for (const Case& c :
       {Case{R"("model":"m","thinking":{"type":"enabled"},"temperature":0.5,"top_p":0.5)", 1,
             0.95f},
        Case{R"("model":"m","thinking":{"type":"enabled"},"top_p":0.97)", 1, 0.97f},
        Case{R"("model":"m","thinking":{"type":"disabled"},"temperature":0.5,"top_p":0.5)", 0.5f,
             1},
        Case{R"("model":"v4","thinking":{"type":"enabled"},"temperature":0.5,"top_p":0.5)", 1, 1},
        Case{R"("model":"v4","thinking":{"type":"disabled"},"temperature":0.5,"top_p":0.5)", 0.5f,
             0.5f}}) {
    const auto request =
        read(Protocol::kChatCompletions, "{" + std::string(kUserX) + "," + c.fields + "}");
    EXPECT_EQ(request.inference.temperature, c.temperature) << c.fields;
    EXPECT_EQ(request.inference.top_p, c.top_p) << c.fields;
    ConvertOptions keep = test_options();
    keep.keep_client_sampling = true;
    const auto kept =
        read(Protocol::kChatCompletions, "{" + std::string(kUserX) + "," + c.fields + "}", keep);
    EXPECT_EQ(kept.inference.top_p, std::string_view(c.fields).ends_with("0.97") ? 0.97f : 0.5f);
  }
}

}  // namespace
}  // namespace fathom::codec
