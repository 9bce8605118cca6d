// Any bytes as the output of a model, cut anywhere: the same result as in one piece, UTF-8, and
// arguments that are JSON.
//
// The first four bytes choose the options and the length of the pieces.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "codec/json_text.h"
#include "codec/output/events_chat.h"
#include "codec/output/events_messages.h"
#include "codec/output/events_responses.h"
#include "codec/output/parsed_output.h"
#include "codec/unicode_utf8.h"

using namespace fathom::codec;

namespace {

OutputStream::Options options_of(const uint8_t* data) {
  OutputStream::Options options;
  ParsingOptions& parsing = options.parser.parsing;
  parsing.thinking_initial_stage = static_cast<ParsingOptions::Stage>(data[0] & 3);
  parsing.parse_tool_calls = (data[0] & 4) == 0;
  options.parser.hide_tool_calls = !parsing.parse_tool_calls && (data[0] & 8) != 0;
  parsing.parse_json_output = (data[0] & 16) != 0;
  parsing.starts_in_tool_calls = (data[0] & 32) != 0;
  options.thinking = (data[0] & 64) != 0;
  if ((data[0] & 128) != 0) parsing.stop_sequences = {"STOP", "ab", "\n\n", "<"};
  options.parser.arguments.hold_bytes = data[1];
  if ((data[2] & 4) != 0) options.parser.tool_parameters = {{"f", {"a", "city"}}};
  return options;
}

std::vector<OutputEvent> run(std::string_view text, size_t piece,
                             const OutputStream::Options& options, FinishReason reason) {
  OutputStream stream(options, nullptr, CallIds::from_seed(0));
  std::vector<OutputEvent> events;
  for (size_t i = 0; i < text.size(); i += piece) {
    stream.push_text(text.substr(i, piece), 1, &events);
  }
  stream.finish(reason, &events);
  return events;
}

ParsedOutput joined(const std::vector<OutputEvent>& events) {
  ParsedOutput output;
  for (const OutputEvent& event : events) output.add(event);
  return output;
}

void check(bool condition) {
  if (!condition) std::abort();
}

void check_events(const std::vector<OutputEvent>& events) {
  const AnswerInfo info{"id", "model", 0};
  ChatEvents chat({info, true, false, true});
  MessagesEvents messages({info, true, {}});
  ResponsesEventOptions options;
  options.info = info;
  options.echo = responses_echo(JsonValue(JsonObject()));
  options.custom_tools = {"apply_patch"};
  options.client_tool_search = true;
  ResponsesEvents responses(options);
  std::vector<AnswerEvent> written;
  for (const OutputEvent& event : events) {
    chat.write(event, &written);
    messages.write(event, &written);
    responses.write(event, &written);
  }
  for (const AnswerEvent& event : written) check(parse_json(event.data).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  const OutputStream::Options options = options_of(data);
  const std::string_view text(reinterpret_cast<const char*>(data) + 4, size - 4);
  const FinishReason reason = (data[2] & 1) != 0 ? FinishReason::kLength : FinishReason::kStop;
  const ParsedOutput whole = joined(run(text, text.size() + 1, options, reason));
  // Each event becomes JSON three times and is read again, so an input has not too many of them.
  constexpr size_t kMostPieces = 24;
  const bool with_events = (data[2] & 2) != 0;
  const size_t least = with_events ? 1 + text.size() / kMostPieces : 1;
  const size_t piece = std::max<size_t>(1 + data[3] % 40, least);
  const std::vector<OutputEvent> events = run(text, piece, options, reason);
  const ParsedOutput cut = joined(events);
  check(whole.reasoning == cut.reasoning && whole.content == cut.content);
  check(whole.calls == cut.calls && whole.reason == cut.reason);
  check(whole.stop_sequence == cut.stop_sequence);
  check(valid_utf8_prefix(cut.content) == cut.content.size());
  check(valid_utf8_prefix(cut.reasoning) == cut.reasoning.size());
  for (const ParsedCall& call : cut.calls) {
    const fathom::Result<JsonValue> arguments = parse_json(call.arguments);
    check(arguments.has_value() && arguments->if_object() != nullptr);
  }
  if (with_events) check_events(events);
  return 0;
}
