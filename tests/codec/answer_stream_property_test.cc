// What a client that streams puts together is what a client that does not stream gets, for random
// outputs, cuts and options, in the three protocols.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "codec/json_text.h"
#include "codec/output/answer_writer.h"
#include "codec/output_fixture.h"

namespace fathom::codec {
namespace {

std::string random_output(std::mt19937& rng) {
  static const std::vector<std::string> kParts = {
      "I think. ",
      "</think>",
      "\n\n",
      "Answer, 日本語 ",
      "<",
      "</",
      "STOP",
      "ST",
      "{\"a\": 1}",
      "```json\n",
      block(invoke("add", param("a", "2", false) + param("b", "x\"y\n<", true))),
      block(invoke("add", "") + invoke("find", param("q", "für"))),
      "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"add\">\n<｜DSML｜ parameter name=\"a\" "
      "string=\"true\">cut"};
  std::string out;
  for (size_t n = rng() % 7; n > 0; --n) out += kParts[rng() % kParts.size()];
  return out;
}

ConversationRequest random_request(std::mt19937& rng) {
  ConversationRequest request;
  Conversation& conversation = request.conversation;
  conversation.messages.emplace_back().content = "json";
  conversation.thinking = rng() % 2 == 0;
  if (rng() % 4 != 0) {
    for (const char* name : {"add", "find"}) {
      conversation.tools.emplace_back().name = name;
      conversation.tools.back().parameters = JsonObject();
    }
  }
  if (rng() % 4 == 0) conversation.response_format.kind = ResponseFormat::Kind::kJsonObject;
  set_parsing(conversation, &request.parsing);
  if (rng() % 2 == 0) request.parsing.stop_sequences = {"STOP", "y\n"};
  request.stream = true;
  return request;
}

struct Answered {
  std::vector<AnswerEvent> stream;
  JsonValue whole;
};

Answered answer(Protocol protocol, const ConversationRequest& request, const std::string& text,
                uint32_t seed) {
  std::mt19937 rng(seed);
  OutputStream stream(OutputStream::options_of(request), nullptr, CallIds::from_seed(seed));
  const auto writer =
      AnswerWriter::create(protocol, request, JsonValue(JsonObject()), {"R", "m", 7});
  std::vector<OutputEvent> events;
  stream.ready(5, 2, "fp", &events);
  for (size_t at = 0; at < text.size();) {
    const size_t n = 1 + rng() % 9;
    stream.push_text(std::string_view(text).substr(at, n), 1, &events);
    at += n;
  }
  if (!stream.finished()) {
    stream.finish(rng() % 3 == 0 ? FinishReason::kLength : FinishReason::kStop, &events);
  }
  Answered out;
  for (const OutputEvent& event : events) writer->write(event, &out.stream);
  out.whole = *parse_json(writer->json());
  return out;
}

const JsonValue& at(const JsonValue& value, std::string_view key) {
  static const JsonValue kNull;
  const JsonValue* found = value.find(key);
  return found != nullptr ? *found : kNull;
}
std::string text_at(const JsonValue& value, std::string_view key) {
  const std::string* text = at(value, key).if_string();
  return text != nullptr ? *text : "";
}
int64_t number_at(const JsonValue& value, std::string_view key) {
  const int64_t* number = at(value, key).if_int64();
  return number != nullptr ? *number : -1;
}
std::string compact(const JsonValue& value) { return write_json(value, JsonStyle::kCompact); }

// One line that says all.
std::string chat_line(const std::string& reasoning, const std::string& content,
                      const std::vector<std::string>& calls, const JsonValue& reason,
                      const JsonValue& usage) {
  std::string line = "R[" + reasoning + "] T[" + content + "]";
  for (const std::string& call : calls) line += " C[" + call + "]";
  return line + " " + compact(reason) + " " + compact(usage);
}

std::string joined_chat(const std::vector<AnswerEvent>& stream) {
  std::string reasoning;
  std::string content;
  std::vector<std::string> calls;
  JsonValue reason;
  JsonValue usage;
  for (const AnswerEvent& event : stream) {
    const JsonValue chunk = *parse_json(event.data);
    const JsonValue& choice = at(chunk, "choices").if_array()->at(0);
    const JsonValue& delta = at(choice, "delta");
    reasoning += text_at(delta, "reasoning_content");
    content += text_at(delta, "content");
    if (const JsonArray* list = at(delta, "tool_calls").if_array()) {
      const JsonValue& call = list->at(0);
      const auto index = static_cast<size_t>(number_at(call, "index"));
      if (index == calls.size()) {
        calls.push_back(text_at(call, "id") + " " + text_at(at(call, "function"), "name") + " ");
      }
      calls.at(index) += text_at(at(call, "function"), "arguments");
    }
    if (!at(choice, "finish_reason").is_null()) reason = at(choice, "finish_reason");
    if (at(chunk, "usage").if_object() != nullptr) usage = at(chunk, "usage");
  }
  return chat_line(reasoning, content, calls, reason, usage);
}

std::string whole_chat(const JsonValue& whole) {
  const JsonValue& choice = at(whole, "choices").if_array()->at(0);
  const JsonValue& message = at(choice, "message");
  std::vector<std::string> calls;
  if (const JsonArray* list = at(message, "tool_calls").if_array()) {
    for (const JsonValue& call : *list) {
      calls.push_back(text_at(call, "id") + " " + text_at(at(call, "function"), "name") + " " +
                      text_at(at(call, "function"), "arguments"));
    }
  }
  return chat_line(text_at(message, "reasoning_content"), text_at(message, "content"), calls,
                   at(choice, "finish_reason"), at(whole, "usage"));
}

std::string joined_messages(const std::vector<AnswerEvent>& stream) {
  std::string line;
  std::string open;
  std::string end;
  for (const AnswerEvent& event : stream) {
    const JsonValue data = *parse_json(event.data);
    EXPECT_EQ(event.name, text_at(data, "type"));
    if (event.name == "content_block_start") {
      const JsonValue& block = at(data, "content_block");
      open = text_at(block, "type") + " " + text_at(block, "id") + text_at(block, "name") + ":";
    } else if (event.name == "content_block_delta") {
      const JsonValue& delta = at(data, "delta");
      open += text_at(delta, "text") + text_at(delta, "thinking") + text_at(delta, "partial_json");
    } else if (event.name == "content_block_stop") {
      line += open + "|";
    } else if (event.name == "message_delta") {
      end = compact(at(at(data, "delta"), "stop_reason")) +
            compact(at(at(data, "delta"), "stop_sequence")) + compact(at(data, "usage"));
    }
  }
  return line + end;
}

std::string whole_messages(const JsonValue& whole) {
  std::string line;
  for (const JsonValue& block : *at(whole, "content").if_array()) {
    line += text_at(block, "type") + " " + text_at(block, "id") + text_at(block, "name") + ":" +
            text_at(block, "text") + text_at(block, "thinking");
    // The stream has the text of the arguments, the whole answer has them as JSON.
    if (at(block, "input").if_object() != nullptr) {
      line += write_json(at(block, "input"), JsonStyle::kPythonV4);
    }
    line += "|";
  }
  return line + compact(at(whole, "stop_reason")) + compact(at(whole, "stop_sequence")) +
         compact(at(whole, "usage"));
}

void check_responses(const Answered& answered) {
  std::map<int64_t, std::string> deltas;
  int64_t sequence = 0;
  JsonValue last;
  for (const AnswerEvent& event : answered.stream) {
    const JsonValue data = *parse_json(event.data);
    EXPECT_EQ(event.name, text_at(data, "type"));
    EXPECT_EQ(number_at(data, "sequence_number"), sequence++);
    if (event.name.ends_with(".delta")) {
      deltas[number_at(data, "output_index")] += text_at(data, "delta");
    }
    if (at(data, "response").if_object() != nullptr) last = at(data, "response");
  }
  EXPECT_EQ(compact(last), compact(answered.whole));
  const JsonArray& items = *at(answered.whole, "output").if_array();
  for (size_t i = 0; i < items.size(); ++i) {
    const JsonArray* content = at(items[i], "content").if_array();
    const std::string text = content != nullptr && !content->empty()
                                 ? text_at(content->at(0), "text")
                                 : text_at(items[i], "arguments");
    EXPECT_EQ(deltas[static_cast<int64_t>(i)], text);
  }
}

TEST(AnswerStreamProperty, StreamedAndWholeAnswersSayTheSame) {
  int calls = 0;
  for (uint32_t seed = 0; seed < 600; ++seed) {
    std::mt19937 rng(seed);
    const ConversationRequest request = random_request(rng);
    const std::string text = random_output(rng);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + text);
    const Answered chat = answer(Protocol::kChatCompletions, request, text, seed);
    EXPECT_EQ(joined_chat(chat.stream), whole_chat(chat.whole));
    const Answered messages = answer(Protocol::kMessages, request, text, seed);
    EXPECT_EQ(joined_messages(messages.stream), whole_messages(messages.whole));
    check_responses(answer(Protocol::kResponses, request, text, seed));
    if (whole_chat(chat.whole).find(" C[") != std::string::npos) ++calls;
  }
  EXPECT_GT(calls, 100);
}

}  // namespace
}  // namespace fathom::codec
