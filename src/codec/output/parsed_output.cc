#include "codec/output/parsed_output.h"

namespace fathom::codec {

void ParsedOutput::add(const OutputEvent& event) {
  using Kind = OutputEvent::Kind;
  switch (event.kind) {
    case Kind::kStart:
      break;
    case Kind::kReasoning:
      reasoning += event.text;
      break;
    case Kind::kText:
      content += event.text;
      break;
    case Kind::kCallBegin:
      calls.push_back({event.call_id, event.text, {}, true});
      break;
    case Kind::kArguments:
      calls.back().arguments += event.text;
      break;
    case Kind::kCallEnd:
      calls.back().complete = event.complete;
      break;
    case Kind::kFinish:
      reason = event.reason;
      stop_sequence = event.stop_sequence;
      usage = event.usage;
      break;
  }
}

ParsedOutput parse_output(std::string_view text, const OutputStream::Options& options,
                          FinishReason engine_reason) {
  OutputStream stream(options, nullptr, CallIds::from_seed(0));
  std::vector<OutputEvent> events;
  stream.push_text(text, 0, &events);
  stream.finish(engine_reason, &events);
  ParsedOutput output;
  for (const OutputEvent& event : events) output.add(event);
  return output;
}

}  // namespace fathom::codec
