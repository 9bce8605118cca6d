// Outputs in files, and answers written by protocol.
#include "codec/output/recorded_output.h"

#include <gtest/gtest.h>

#include "codec/json_text.h"
#include "codec/output/answer_writer.h"
#include "codec/tokenizer_fixture.h"

namespace fathom::codec {
namespace {

JsonValue json(std::string_view text) {
  Result<JsonValue> value = parse_json(text);
  EXPECT_TRUE(value.has_value()) << text;
  return value ? *std::move(value) : JsonValue();
}

std::string chunks_error(std::string_view text) {
  const Result<std::vector<RecordedChunk>> chunks = read_recorded_output(json(text));
  return chunks ? "" : chunks.error().message();
}

// The output as fathom parse prints it.
std::string replayed(std::string_view text) {
  const Result<std::vector<RecordedChunk>> chunks = read_recorded_output(json(text));
  if (!chunks) return chunks.error().message();
  OutputStream stream({}, &v41(), CallIds::from_seed(0));
  std::vector<OutputEvent> events;
  if (const Status status = replay(*chunks, &stream, &events); !status.ok()) {
    return status.message();
  }
  ParsedOutput output;
  for (const OutputEvent& event : events) output.add(event);
  return write_json(JsonValue(parsed_output_json(output)), JsonStyle::kCompact);
}

TEST(RecordedOutput, TextIdsAndChunksAreRead) {
  const std::string rest = R"("tool_calls":[],"finish":"stop","stop_sequence":null,)";
  EXPECT_EQ(replayed(R"({"text": "ab"})"),
            R"({"reasoning":"","content":"ab",)" + rest + R"("completion_tokens":0})");
  EXPECT_EQ(replayed(R"({"ids": [671, 3287]})"),
            R"({"reasoning":"","content":"The answer",)" + rest + R"("completion_tokens":2})");
  EXPECT_EQ(replayed(R"({"chunks": [{"kind": "ready", "prompt_tokens": 3}, {"kind": "text",)"
                     R"("content": "a", "content_tokens": 4}, {"kind": "tokens", "ids": [671],)"
                     R"("logprobs": [[-0.5, [[671, -0.5]]]]}]})"),
            R"({"reasoning":"","content":"aThe",)" + rest + R"("completion_tokens":5})");
}

TEST(RecordedOutput, ErrorsNameThePlace) {
  EXPECT_EQ(chunks_error("{}"), "there is no text, ids or chunks");
  EXPECT_EQ(chunks_error("[]"), "there is no text, ids or chunks");
  EXPECT_EQ(chunks_error(R"({"chunks": 1})"), ".chunks is not a list");
  EXPECT_EQ(chunks_error(R"({"chunks": [1]})"),
            ".chunks[0].kind is not ready, text, tokens or finish");
  EXPECT_EQ(chunks_error(R"({"chunks": [{"kind": "tokens"}]})"), ".chunks[0].ids is not there");
  EXPECT_EQ(chunks_error(R"({"chunks": [{"kind": "text", "content_tokens": -1}]})"),
            ".chunks[0].content_tokens is not a whole number from 0");
  EXPECT_EQ(chunks_error(R"({"chunks": [{"kind": "tokens", "ids": [1], "logprobs": [[1]]}]})"),
            ".chunks[0].logprobs[0] is not [logprob, [[id, logprob], ...]]");
  EXPECT_EQ(chunks_error(R"({"ids": [3000000000]})"), ".ids[0] is not a token id");
  EXPECT_EQ(chunks_error(R"({"text": 1})"), ".text is not a string");
  EXPECT_EQ(chunks_error(R"({"text": "", "finish_reason": "no"})"),
            ".finish_reason is not stop, length or content_filter");
}

TEST(RecordedOutput, ParsingOptionsAreRead) {
  const Result<ParsingOptions> options = read_parsing_options(
      json(R"({"parse_tool_calls": false, "parse_json_output": true, "stop_sequences": ["x"],)"
           R"("thinking_initial_stage": "content_continuation", "starts_in_tool_calls": null})"));
  ASSERT_TRUE(options.has_value()) << options.error().message();
  EXPECT_FALSE(options->parse_tool_calls);
  EXPECT_TRUE(options->parse_json_output);
  EXPECT_EQ(options->stop_sequences, std::vector<std::string>{"x"});
  EXPECT_EQ(options->thinking_initial_stage, ParsingOptions::Stage::kContentContinuation);
  for (const std::string_view wrong :
       {R"({"parse_tool_calls": 1})", R"({"stop_sequences": "x"})", R"({"stop_sequences": [1]})",
        R"({"thinking_initial_stage": "on"})"}) {
    EXPECT_FALSE(read_parsing_options(json(wrong)).has_value()) << wrong;
  }
}

TEST(AnswerWriter, EachProtocolHasItsOwnWords) {
  OutputStream stream({}, nullptr, CallIds::from_seed(0));
  std::vector<OutputEvent> events;
  stream.push_text("Hi", 1, &events);
  stream.finish(FinishReason::kStop, &events);
  const auto written = [&](Protocol protocol, std::string* whole, std::string* end) {
    ConversationRequest request;
    request.conversation.thinking = false;
    const auto writer =
        AnswerWriter::create(protocol, request, JsonValue(JsonObject()), {"id", "m", 0});
    std::vector<AnswerEvent> answers;
    for (const OutputEvent& event : events) writer->write(event, &answers);
    *whole = writer->json();
    *end = writer->stream_end();
    return answers;
  };
  std::string whole;
  std::string end;
  EXPECT_EQ(written(Protocol::kChatCompletions, &whole, &end).size(), 3u);
  EXPECT_NE(whole.find(R"("content":"Hi")"), std::string::npos);
  EXPECT_EQ(end, "[DONE]");
  const std::vector<AnswerEvent> messages = written(Protocol::kMessages, &whole, &end);
  EXPECT_EQ(server_sent_event(messages.back()),
            "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
  EXPECT_NE(whole.find(R"({"type":"text","text":"Hi"})"), std::string::npos);
  EXPECT_EQ(end, "");
  EXPECT_EQ(written(Protocol::kResponses, &whole, &end).back().name, "response.completed");
  EXPECT_NE(whole.find(R"("text":"Hi")"), std::string::npos);
}

}  // namespace
}  // namespace fathom::codec
