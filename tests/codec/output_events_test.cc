// The words of the three protocols.  What they say in all cases is checked by the recorded vectors
// (tools/check_vectors); here it is the order of the words, and what has no vector.
#include <gtest/gtest.h>

#include "codec/json_text.h"
#include "codec/output/answer_writer.h"
#include "codec/output/events_chat.h"
#include "codec/output/events_messages.h"
#include "codec/output/events_responses.h"
#include "codec/output_fixture.h"

namespace fathom::codec {
namespace {

const AnswerInfo kInfo{"R1", "ds", 1700000000};

// Thinking, an answer and a call without arguments; its id is the first of seed 0.
std::vector<OutputEvent> sample_events(FinishReason reason = FinishReason::kStop) {
  OutputStream stream(thinking_options(), nullptr, CallIds::from_seed(0));
  std::vector<OutputEvent> events;
  stream.ready(12, 8, "fp_1", &events);
  stream.push_text("I check.</think>\n\nOne moment.\n\n" + block(invoke("add", "")), 40, &events);
  stream.finish(reason, &events);
  return events;
}

std::string sample_id() { return CallIds::from_seed(0).next(0, false); }

template <class Writer>
std::vector<AnswerEvent> write_all(const std::vector<OutputEvent>& events, Writer* writer) {
  std::vector<AnswerEvent> written;
  for (const OutputEvent& event : events) writer->write(event, &written);
  return written;
}

TEST(ChatEvents, ChunksHaveTheOrderOfTheProtocol) {
  ChatEvents writer({kInfo, true, false, false});
  const std::vector<AnswerEvent> chunks = write_all(sample_events(), &writer);
  ASSERT_EQ(chunks.size(), 6u);
  const std::string head =
      R"({"id":"R1","object":"chat.completion.chunk","created":1700000000,"model":"ds",)"
      R"("system_fingerprint":"fp_1","choices":[{"index":0,"delta":)";
  const std::string tail = R"(,"logprobs":null,"finish_reason":null}]})";
  EXPECT_EQ(chunks[0].name, "");
  EXPECT_EQ(chunks[0].data,
            head + R"({"role":"assistant","content":null,"reasoning_content":""})" + tail);
  EXPECT_EQ(chunks[1].data, head + R"({"content":null,"reasoning_content":"I check."})" + tail);
  EXPECT_EQ(chunks[2].data, head + R"({"content":"One moment.","reasoning_content":null})" + tail);
  EXPECT_EQ(chunks[3].data,
            head + R"({"tool_calls":[{"index":0,"id":")" + sample_id() +
                R"(","type":"function","function":{"name":"add","arguments":""}}]})" + tail);
  EXPECT_EQ(chunks[4].data,
            head + R"({"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]})" + tail);
  EXPECT_EQ(
      chunks[5].data,
      head + R"({"content":"","reasoning_content":null},"logprobs":null,)" +
          R"("finish_reason":"tool_calls"}],"usage":{"prompt_tokens":12,"completion_tokens":40,)" +
          R"("total_tokens":52,"prompt_tokens_details":{"cached_tokens":8},)" +
          R"("prompt_cache_hit_tokens":8,"prompt_cache_miss_tokens":4}})");
}

TEST(ChatEvents, WholeAnswerHasTheOrderOfTheProtocol) {
  ChatAnswer answer({kInfo, true, false, false});
  for (const OutputEvent& event : sample_events()) answer.add(event);
  EXPECT_EQ(answer.json(),
            R"({"id":"R1","object":"chat.completion","created":1700000000,"model":"ds",)"
            R"("choices":[{"index":0,"message":{"role":"assistant","content":"One moment.",)"
            R"("reasoning_content":"I check.","tool_calls":[{"index":0,"id":")" +
                sample_id() +
                R"(","type":"function","function":{"name":"add","arguments":"{}"}}]},)"
                R"("logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":12,)"
                R"("completion_tokens":40,"total_tokens":52,"prompt_tokens_details":)"
                R"({"cached_tokens":8},"prompt_cache_hit_tokens":8,"prompt_cache_miss_tokens":4},)"
                R"("system_fingerprint":"fp_1"})");
}

TEST(MessagesEvents, EventsHaveTheOrderOfTheProtocol) {
  MessagesEvents writer({kInfo, true, "sig"});
  std::string stream;
  for (const AnswerEvent& event : write_all(sample_events(), &writer)) {
    EXPECT_NE(event.data.find("{\"type\":\"" + event.name + "\""), std::string::npos);
    stream += event.data + "\n";
  }
  EXPECT_EQ(
      stream,
      R"({"type":"message_start","message":{"id":"R1","type":"message","role":"assistant",)"
      R"("model":"ds","content":[],"stop_reason":null,"stop_sequence":null,"usage":)"
      R"({"input_tokens":4,"cache_creation_input_tokens":0,"cache_read_input_tokens":8,)"
      R"("output_tokens":0,"service_tier":"standard"}}})"
      "\n"
      R"({"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}})"
      "\n"
      R"({"type":"ping"})"
      "\n"
      R"({"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"I check."}})"
      "\n"
      R"({"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}})"
      "\n"
      R"({"type":"content_block_stop","index":0})"
      "\n"
      R"({"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}})"
      "\n"
      R"({"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"One moment."}})"
      "\n"
      R"({"type":"content_block_stop","index":1})"
      "\n"
      R"({"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":")" +
          sample_id() +
          R"(","name":"add","input":{}}})"
          "\n"
          R"({"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{}"}})"
          "\n"
          R"({"type":"content_block_stop","index":2})"
          "\n"
          R"({"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},)"
          R"("usage":{"input_tokens":4,"cache_creation_input_tokens":0,"cache_read_input_tokens":8,)"
          R"("output_tokens":40,"service_tier":"standard"}})"
          "\n"
          R"({"type":"message_stop"})"
          "\n");
}

ResponsesEventOptions responses_options() {
  ResponsesEventOptions options;
  options.info = kInfo;
  options.echo = responses_echo(JsonValue(JsonObject()));
  return options;
}

TEST(ResponsesEvents, EventsHaveTheOrderOfTheProtocol) {
  ResponsesEvents writer(responses_options());
  const std::vector<AnswerEvent> events = write_all(sample_events(), &writer);
  ASSERT_EQ(events.size(), 19u);
  EXPECT_EQ(events[0].name, "response.created");
  EXPECT_EQ(events[2].data,
            R"({"type":"response.output_item.added","item":{"type":"reasoning","id":"rs_R1_0",)"
            R"("status":"in_progress","content":[],"summary":[],"encrypted_content":"R1-0"},)"
            R"("output_index":0,"sequence_number":2})");
  EXPECT_EQ(events[4].data,
            R"({"type":"response.reasoning_text.delta","content_index":0,"delta":"I check.",)"
            R"("item_id":"rs_R1_0","output_index":0,"sequence_number":4})");
  EXPECT_EQ(events[5].data,
            R"({"type":"response.reasoning_text.done","content_index":0,"item_id":"rs_R1_0",)"
            R"("output_index":0,"sequence_number":5,"text":"I check."})");
  EXPECT_EQ(events[10].data,
            R"({"type":"response.output_text.delta","content_index":0,"delta":"One moment.",)"
            R"("item_id":"msg_R1_1","logprobs":[],"output_index":1,"sequence_number":10})");
  EXPECT_EQ(events[13].data,
            R"({"type":"response.output_item.done","item":{"type":"message","id":"msg_R1_1",)"
            R"("status":"completed","role":"assistant","phase":"commentary","content":[{"type":)"
            R"("output_text","annotations":[],"logprobs":[],"text":"One moment."}]},)"
            R"("output_index":1,"sequence_number":13})");
  EXPECT_EQ(events[17].data,
            R"({"type":"response.output_item.done","item":{"type":"function_call","id":"fc_R1_2",)"
            R"("status":"completed","call_id":")" +
                sample_id() +
                R"(","name":"add","arguments":"{}"},"output_index":2,"sequence_number":17})");
  EXPECT_EQ(events[18].data, "{\"type\":\"response.completed\",\"response\":" + writer.json() +
                                 ",\"sequence_number\":18}");
  const std::string whole = writer.json();
  EXPECT_TRUE(whole.starts_with(
      R"({"id":"R1","object":"response","created_at":1700000000,"status":"completed",)"
      R"("background":false,"completed_at":1700000000,"content_filters":null,"error":null,)"
      R"("frequency_penalty":0.0,"incomplete_details":null,"instructions":null,)"))
      << whole;
  EXPECT_TRUE(whole.ends_with(
      R"("top_logprobs":0,"top_p":1.0,"truncation":"disabled","usage":{"input_tokens":12,)"
      R"("input_tokens_details":{"cached_tokens":8},"output_tokens":40,"output_tokens_details":)"
      R"({"reasoning_tokens":0},"total_tokens":52},"user":null,"metadata":{}})"))
      << whole;
}

TEST(ResponsesEvents, ClientToolSearchIsAnItemOfItsOwn) {
  ResponsesEventOptions options = responses_options();
  options.client_tool_search = true;
  ResponsesEvents writer(options);
  OutputStream stream(output_options(), nullptr, CallIds::from_seed(0));
  std::vector<OutputEvent> events;
  stream.push_text(block(invoke("tool_search", param("query", "x"))), 1, &events);
  stream.finish(FinishReason::kStop, &events);
  const std::vector<AnswerEvent> written = write_all(events, &writer);
  ASSERT_EQ(written.size(), 5u);
  EXPECT_EQ(written[3].data,
            R"({"type":"response.output_item.done","item":{"type":"tool_search_call","id":)"
            R"("tsc_R1_0","status":"completed","call_id":")" +
                sample_id() +
                R"(","execution":"client","arguments":{"query":"x"}},"output_index":0,)"
                R"("sequence_number":3})");
}

TEST(ResponsesEvents, AnswerThatWasCutIsIncomplete) {
  ResponsesEvents writer(responses_options());
  writer.set_completed_at(1700000009);
  OutputStream stream(output_options(), nullptr, CallIds::from_seed(0));
  std::vector<OutputEvent> events;
  stream.push_text("<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n" + param("a", "1"), 1,
                   &events);
  stream.finish(FinishReason::kLength, &events);
  for (const OutputEvent& event : events) writer.write(event, nullptr);
  const std::string whole = writer.json();
  EXPECT_NE(whole.find(R"("status":"incomplete","background":false,"completed_at":1700000009)"),
            std::string::npos);
  EXPECT_NE(whole.find(R"("status":"incomplete","call_id")"), std::string::npos) << whole;
  EXPECT_NE(whole.find(R"("incomplete_details":{"reason":"max_output_tokens"})"),
            std::string::npos);
}

TEST(ResponsesEcho, RepeatsWhatTheRequestSaid) {
  const Result<JsonValue> body = parse_json(
      R"({"instructions":"I","max_output_tokens":50,"temperature":0.3,"top_p":1,"top_logprobs":2,)"
      R"("user":"u","reasoning":{"effort":"low","generate_summary":"auto"},"text":{"verbosity":"low",)"
      R"("format":{"type":"json_schema","name":"N","schema":{"type":"object"}}},"tools":[)"
      R"({"type":"function","name":"f"},{"type":"mcp","server_label":"z"},{"type":"custom",)"
      R"("name":"apply_patch"}],"tool_choice":"required"})");
  ASSERT_TRUE(body.has_value());
  const ResponsesEcho echo = responses_echo(*body);
  EXPECT_EQ(echo.instructions, "\"I\"");
  EXPECT_EQ(echo.max_output_tokens, "50");
  EXPECT_EQ(echo.temperature, "0.3");
  EXPECT_EQ(echo.top_p, "1.0");
  EXPECT_EQ(echo.top_logprobs, "2");
  EXPECT_EQ(echo.user, "\"u\"");
  EXPECT_EQ(echo.reasoning, R"({"effort":"low","summary":"auto"})");
  EXPECT_EQ(echo.text, R"({"format":{"type":"json_schema","name":"N","description":null,"schema":)"
                       R"({"type":"object"},"strict":null},"verbosity":"low"})");
  EXPECT_EQ(echo.tools,
            R"([{"type":"function","name":"f","description":null,"parameters":null,"strict":null},)"
            R"({"type":"custom","name":"apply_patch"}])");
  EXPECT_EQ(echo.tool_choice, "\"required\"");
}

std::string custom_input(std::string_view json) {
  std::string whole;
  CustomToolInput at_once;
  at_once.push(json, &whole);
  at_once.finish(&whole);
  std::string joined;
  CustomToolInput bytewise;
  for (const std::string_view byte : bytes_of(json)) bytewise.push(byte, &joined);
  bytewise.finish(&joined);
  EXPECT_EQ(whole, joined);
  return whole;
}

TEST(CustomToolInput, DecodesTheStringAndPassesOtherTextOn) {
  EXPECT_EQ(custom_input(R"({"input": "a\n\"\\\/\u00e9\ud83e\udd80é"} tail)"), "a\n\"\\/é🦀é");
  EXPECT_EQ(custom_input(" { \"input\" :\n\"x\"}"), "x");
  EXPECT_EQ(custom_input(R"({"input": ["a"]})"), R"({"input": ["a"]})");
  EXPECT_EQ(custom_input(R"({"in put": "x"})"), R"({"in put": "x"})");
  EXPECT_EQ(custom_input("{}"), "{}");
  EXPECT_EQ(custom_input("{\"inp"), "{\"inp");
  EXPECT_EQ(custom_input(R"({"input": "a\q\ud83e\n12345\u12)"), R"(a\q\ud83e\n12345\u12)");
}

TEST(CallIds, SayTheNumberAndWhetherThinkingWasEmpty) {
  CallIds ids = CallIds::from_seed(7);
  const std::string first = ids.next(0, false);
  EXPECT_EQ(first.size(), std::string("call_00_").size() + 24);
  EXPECT_TRUE(first.starts_with("call_00_"));
  EXPECT_TRUE(ids.next(1, true).starts_with("call_01_ET_"));
  EXPECT_TRUE(ids.next(123, false).starts_with("call_123_"));
  EXPECT_EQ(first, CallIds::from_seed(7).next(0, false));
  EXPECT_NE(first, CallIds::from_seed(8).next(0, false));
}

TEST(CallIds, EmptyThinkingIsMarkedByTheStream) {
  const auto first_id = [](std::string_view text) {
    return run_pieces({text}, thinking_options()).calls.at(0).id;
  };
  EXPECT_TRUE(first_id("</think>" + block(invoke("f", ""))).starts_with("call_00_ET_"));
  EXPECT_FALSE(first_id("hm</think>" + block(invoke("f", ""))).starts_with("call_00_ET_"));
}

TEST(ChatChoices, SeveralAnswersShareOneStreamAndOneUsage) {
  const auto writer = AnswerWriter::create(Protocol::kChatCompletions, ConversationRequest(),
                                           JsonValue(JsonObject()), {"id", "m", 0}, {}, 2);
  std::vector<AnswerEvent> written;
  const auto say = [&](size_t choice, OutputEvent event) {
    writer->write(event, &written, choice);
  };
  using Kind = OutputEvent::Kind;
  const auto finish = [](uint64_t cached, uint64_t completed, FinishReason reason) {
    OutputEvent event{.kind = Kind::kFinish, .reason = reason};
    event.usage.prompt_tokens = 10;
    event.usage.prompt_cache_hit_tokens = cached;
    event.usage.completion_tokens = completed;
    return event;
  };
  say(0, {.kind = Kind::kStart});
  say(1, {.kind = Kind::kStart});
  say(1, {.kind = Kind::kText, .text = "b"});
  say(0, {.kind = Kind::kText, .text = "a"});
  say(1, finish(9, 3, FinishReason::kLength));
  say(0, finish(4, 2, FinishReason::kStop));
  ASSERT_EQ(written.size(), 6u);
  EXPECT_NE(written[2].data.find(R"("index":1,"delta":{"content":"b")"), std::string::npos);
  EXPECT_EQ(written[4].data.find("prompt_tokens"), std::string::npos);
  EXPECT_NE(
      written[5].data.find(R"("usage":{"prompt_tokens":10,"completion_tokens":5,)"
                           R"("total_tokens":15,"prompt_tokens_details":{"cached_tokens":4})"),
      std::string::npos);
  const JsonValue whole = *parse_json(writer->json());
  const JsonArray& choices = *whole.find("choices")->if_array();
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(*choices[0].find("message")->find("content")->if_string(), "a");
  EXPECT_EQ(*choices[1].find("index")->if_int64(), 1);
  EXPECT_EQ(*choices[1].find("finish_reason")->if_string(), "length");
  EXPECT_EQ(*whole.find("usage")->find("completion_tokens")->if_int64(), 5);
}

TEST(ChatChoices, TheOperatorBoundsTheirNumber) {
  ConvertOptions options;
  options.models.clear();
  options.max_choices = 4;
  const auto read = [&](const char* n) {
    return read_request(
        Protocol::kChatCompletions,
        R"({"messages":[{"role":"user","content":"x"}],"n":)" + std::string(n) + "}", options);
  };
  EXPECT_EQ(read("4")->num_choices, 4u);
  for (const char* n : {"0", "5"}) {
    EXPECT_EQ(read(n).error().message(), "Invalid n value, the valid range of n is [1, 4]");
  }
}

}  // namespace
}  // namespace fathom::codec
