// parse_speed TOKENIZER_JSON IDS [SECONDS]: how fast outputs are parsed, one id a chunk, one
// thread.
//
// IDS: a text file of token ids, those of an answer with thinking and tool calls.  Prints two
// lines, "events RATE" and "json RATE", in tokens a second: to protocol-neutral events, and to the
// JSON of the chunks of Chat Completions.  tools/output_parse_peer.py sets the published package
// beside it.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "codec/output/events_chat.h"
#include "codec/output/output_stream.h"

namespace {

using namespace fathom::codec;
using Clock = std::chrono::steady_clock;

OutputStream::Options options() {
  OutputStream::Options options;
  options.parser.parsing.thinking_initial_stage = ParsingOptions::Stage::kReasoningStart;
  options.parser.arguments.hold_bytes = 128;
  options.thinking = true;
  return options;
}

// Bytes of events and JSON, so that nothing is optimised away; 0 after an error.
size_t parse_once(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, bool with_json) {
  OutputStream stream(options(), &tokenizer, CallIds::from_seed(0));
  ChatEvents writer({{"id", "model", 0}, true, false, true});
  std::vector<OutputEvent> events;
  std::vector<AnswerEvent> written;
  size_t bytes = 0;
  const auto take = [&] {
    for (const OutputEvent& event : events) {
      bytes += event.text.size();
      if (with_json) writer.write(event, &written);
    }
    for (const AnswerEvent& event : written) bytes += event.data.size();
    events.clear();
    written.clear();
  };
  stream.ready(10, 0, "fp", &events);
  for (const int32_t id : ids) {
    if (!stream.push_tokens({&id, 1}, {}, &events).ok()) return 0;
    take();
  }
  stream.finish(FinishReason::kStop, &events);
  take();
  return bytes;
}

double rate(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, bool with_json,
            double seconds) {
  size_t runs = 0;
  const Clock::time_point begin = Clock::now();
  double elapsed = 0;
  while (elapsed < seconds) {
    if (parse_once(tokenizer, ids, with_json) == 0) return 0;
    ++runs;
    elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  return static_cast<double>(runs * ids.size()) / elapsed;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: parse_speed TOKENIZER_JSON IDS [SECONDS]\n");
    return 2;
  }
  const auto tokenizer = Tokenizer::load(argv[1]);
  if (!tokenizer) {
    std::fprintf(stderr, "parse_speed: %s\n", tokenizer.error().to_string().c_str());
    return 2;
  }
  std::ifstream file(argv[2]);
  std::vector<int32_t> ids;
  for (int32_t id = 0; file >> id;) ids.push_back(id);
  const double seconds = argc > 3 ? std::atof(argv[3]) : 1;
  const double events = rate(**tokenizer, ids, false, seconds);
  const double json = rate(**tokenizer, ids, true, seconds);
  if (events == 0 || json == 0) {
    std::fprintf(stderr, "parse_speed: %s: no ids, or one outside of the vocabulary\n", argv[2]);
    return 1;
  }
  std::printf("events %.0f\njson %.0f\n", events, json);
  return 0;
}
