// fathom bench agent: conversations side by side, as agents have them.  One system prompt and one
// set of tools for all, a history that grows, every other turn the result of a tool.
//
// A turn's prompt is the whole conversation, rendered and encoded anew as a server does it; the
// model's own words go into the history.  So what the prefix cache saves is what it would save
// there.
#include <algorithm>
#include <cstdio>
#include <random>

#include "bench.h"
#include "codec/json_text.h"
#include "device/process_memory.h"
#include "failure.h"
#include "fathom/codec.h"
#include "load.h"

namespace fathom::app {
namespace {

using codec::JsonArray;
using codec::JsonObject;
using codec::JsonValue;

constexpr const char* kTools = R"([
 {"type":"function","function":{"name":"read_file","description":"Reads a text file of the project.",
  "parameters":{"type":"object","properties":{"path":{"type":"string","description":"Relative path."},
  "first_line":{"type":"integer"},"last_line":{"type":"integer"}},"required":["path"]}}},
 {"type":"function","function":{"name":"search","description":"Finds lines that contain a text.",
  "parameters":{"type":"object","properties":{"text":{"type":"string"},"folder":{"type":"string"},
  "limit":{"type":"integer","description":"Lines at most."}},"required":["text"]}}},
 {"type":"function","function":{"name":"run_tests","description":"Runs the tests of one folder.",
  "parameters":{"type":"object","properties":{"folder":{"type":"string"}},"required":["folder"]}}}])";

constexpr const char* kRules =
    "You help with a small program. Read a file before you change it. Say what you will do in one "
    "sentence, then do it. Keep answers short. Never guess the content of a file. When a test "
    "fails, quote the line that failed. Do not change files outside of the folder that the user "
    "names. If two files disagree, ask. ";

JsonValue object(std::vector<JsonObject::Member> members) {
  return JsonValue(JsonObject(std::move(members)));
}

// A line or two of words, the same for the same numbers.
std::string words(uint64_t seed, int count) {
  constexpr const char* kWords[] = {"the",   "file", "line",  "test",  "value", "reads", "house",
                                    "count", "name", "green", "water", "table", "first", "river",
                                    "after", "open", "small", "seven", "stone", "paper"};
  std::mt19937_64 random(seed);
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += std::string(i > 0 ? " " : "") + kWords[random() % std::size(kWords)];
  }
  return text + ".";
}

struct AgentConversation {
  JsonArray messages;
  int turn = 0;
};

class AgentLoad : public LoadSource {
 public:
  AgentLoad(const Codec& codec, int conversations, int turns, int output_tokens)
      : codec_(codec), turns_(turns), output_(output_tokens) {
    tools_ = *codec::parse_json(kTools);
    std::string system;
    for (int i = 0; i < 4; ++i) system += kRules + words(static_cast<uint64_t>(i), 40) + "\n";
    for (int i = 0; i < conversations; ++i) {
      AgentConversation c;
      c.messages.push_back(object({{"role", "system"}, {"content", system}}));
      conversations_.push_back(std::move(c));
    }
  }

  Result<std::optional<Request>> next(int user) override {
    AgentConversation& c = conversations_[static_cast<size_t>(user)];
    if (c.turn >= turns_) return std::optional<Request>();
    const uint64_t seed = static_cast<uint64_t>(user) * 1000 + static_cast<uint64_t>(c.turn);
    if (c.turn % 2 == 0) {
      c.messages.push_back(object({{"role", "user"}, {"content", words(seed, 25)}}));
    } else {
      add_call(seed, &c);
    }
    ++c.turn;
    const JsonValue body = object({{"messages", c.messages},
                                   {"tools", tools_},
                                   {"thinking", object({{"type", "disabled"}})}});
    FATHOM_ASSIGN(RenderedRequest rendered,
                  codec_.render(ApiProtocol::kChatCompletions,
                                codec::write_json(body, codec::JsonStyle::kCompact)));
    Request request;
    request.prompt = std::move(rendered.ids);
    request.params.temperature = 0;
    request.params.ignore_eos = true;
    request.params.max_tokens = output_;
    return std::optional<Request>(std::move(request));
  }

  void done(int user, const RequestTrace&, std::span<const int32_t> output) override {
    conversations_[static_cast<size_t>(user)].messages.push_back(
        object({{"role", "assistant"}, {"content", codec_.decode(output)}}));
  }

 private:
  // The answer that came last also called a tool; its result is the next message.
  static void add_call(uint64_t seed, AgentConversation* c) {
    const std::string id = "call_" + std::to_string(seed);
    const JsonValue arguments(R"({"path":"src/part_)" + std::to_string(seed) + R"(.txt"})");
    JsonArray calls;
    calls.push_back(
        object({{"id", id},
                {"type", "function"},
                {"function", object({{"name", "read_file"}, {"arguments", arguments}})}}));
    c->messages.back().if_object()->append("tool_calls", std::move(calls));
    c->messages.push_back(
        object({{"role", "tool"}, {"tool_call_id", id}, {"content", words(seed + 7, 120)}}));
  }

  const Codec& codec_;
  int turns_, output_;
  JsonValue tools_;
  std::vector<AgentConversation> conversations_;
};

struct CacheMode {
  const char* name;
  PrefixCache mode;
};

Result<BenchRow> run_mode(const BenchOptions& options, const CacheMode& mode, const Codec& codec,
                          bool is_last, BenchReport* report) {
  BenchOptions with_mode = options;
  with_mode.engine.prefix_cache = mode.mode;
  const int output = options.output_tokens > 0 ? options.output_tokens : 24;
  FATHOM_ASSIGN(const auto engine, start_bench_engine(with_mode, options.conversations));
  AgentLoad source(codec, options.conversations, options.turns, output);
  FATHOM_ASSIGN(const LoadResult load, run_load(*engine->requests, options.conversations, source));
  BenchRow row{.name = std::string("agent.cache_") + mode.name,
               .value = load.ttft_s().p50,
               .floor = 0,
               .figures = {}};
  add_load_figures(load, &row);
  row.figures.emplace_back("seconds", load.seconds);
  row.figures.emplace_back("hit_rate", row.figure("cached_tokens") / row.figure("prompt_tokens"));
  std::fprintf(stderr, "%s: %.1f s, hit rate %.3f, first token after %.1f ms (p50)\n",
               row.name.c_str(), load.seconds, row.figure("hit_rate"), row.value * 1e3);
  if (!is_last) return row;
  report->memory = memory_use(*engine);
  add_engine_setup(with_mode, *engine, &report->setup);
  report->setup.add("conversations", options.conversations);
  report->setup.add("turns", options.turns);
  report->setup.add("output_tokens", output);
  report->setup.add("chat", "shared system prompt, 3 tools, every other turn a tool result");
  add_origin(options.command, &report->setup);
  return row;
}

}  // namespace

Result<BenchReport> bench_agent(const BenchOptions& options) {
  FATHOM_ASSIGN(const std::filesystem::path dir, find_model(options.engine.model));
  FATHOM_ASSIGN(const auto codec, Codec::open(dir / "tokenizer.json"));
  const CacheMode modes[] = {
      {"on", PrefixCache::kOn}, {"replay", PrefixCache::kReplay}, {"off", PrefixCache::kOff}};
  BenchReport report;
  report.peaks = measure_peaks(options);
  for (const CacheMode& mode : modes) {
    const bool is_last = &mode == std::end(modes) - 1;
    FATHOM_ASSIGN(BenchRow row, run_mode(options, mode, *codec, is_last, &report));
    report.rows.push_back(std::move(row));
  }
  return report;
}

}  // namespace fathom::app
