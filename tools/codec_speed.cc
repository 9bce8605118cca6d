// codec_speed PROTOCOL REQUEST TOKENIZER SECONDS: times the codec on one body (PROTOCOL is
// chat_completions, responses or messages), on one thread.  tools/codec_peer.py runs it beside the
// published package.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "codec/json_text.h"
#include "codec/prompt.h"
#include "codec/request.h"
#include "codec/tokenizer.h"

namespace {

using namespace fathom;
using Clock = std::chrono::steady_clock;

// Seconds of one call: the least over batches, for about `seconds` in all.
template <class Call>
double least_seconds(double seconds, Call call) {
  const auto begin = Clock::now();
  double least = 1e9;
  while (std::chrono::duration<double>(Clock::now() - begin).count() < seconds) {
    const auto start = Clock::now();
    call();
    least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return least;
}

template <class Value>
Value value_or_exit(Result<Value> result) {
  if (!result) {
    std::fprintf(stderr, "codec_speed: %s\n", result.error().to_string().c_str());
    std::exit(1);
  }
  return *std::move(result);
}

}  // namespace

int main(int argc, char** argv) {
  const auto protocol = argc == 5 ? codec::parse_protocol(argv[1]) : std::nullopt;
  if (!protocol) {
    std::fprintf(stderr, "use: codec_speed PROTOCOL REQUEST TOKENIZER SECONDS\n");
    return 2;
  }
  std::ifstream stream(argv[2], std::ios::binary);
  const std::string body{std::istreambuf_iterator<char>(stream), {}};
  const double seconds = std::atof(argv[4]);
  const auto tokenizer = value_or_exit(codec::Tokenizer::load(argv[3]));
  codec::ConvertOptions options;
  options.models.clear();
  const auto read = [&] { return value_or_exit(codec::read_request(*protocol, body, options)); };
  const codec::ConversationRequest request = read();
  const auto render = [&] { return value_or_exit(codec::render_prompt(request.conversation, {})); };
  const codec::Prompt prompt = render();
  size_t kept = 0;  // so that no call can be left out
  const double json_s = least_seconds(
      seconds / 2, [&] { kept += value_or_exit(codec::parse_json(body)).if_object()->size(); });
  const double read_s =
      least_seconds(seconds, [&] { kept += read().conversation.messages.size(); });
  const double render_s = least_seconds(seconds, [&] { kept += render().text.size(); });
  const double encode_s = least_seconds(
      seconds, [&] { kept += value_or_exit(codec::encode_prompt(*tokenizer, prompt)).size(); });
  const size_t num_ids = value_or_exit(codec::encode_prompt(*tokenizer, prompt)).size();
  std::printf(
      "{\"json_s\": %.9f, \"read_s\": %.9f, \"render_s\": %.9f, \"encode_s\": %.9f, "
      "\"prompt_bytes\": %zu, "
      "\"ids\": %zu, \"kept\": %zu}\n",
      json_s, read_s, render_s, encode_s, prompt.text.size(), num_ids, kept);
  return 0;
}
