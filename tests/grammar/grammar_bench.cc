// What a grammar costs: time of a compile, of a token's mask, of taking a token.
//
//   grammar_bench TOKENIZER_JSON [ANSWERS [PART_OF_NAME | /REGEX/]] [--check]
//
// prints a table in Markdown; CPU time of one thread.  --check: every mask of a new state also
// against what the matcher takes, token by token (minutes).
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <numeric>

#include "grammar/grammar_fixture.h"

namespace fathom::grammar {

// Time of this thread on a processor, so that other jobs of the machine count less.
inline double thread_us() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

namespace {

double us_since(double start) { return thread_us() - start; }

double percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values.empty()
             ? 0
             : values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

struct Case {
  const char* name;
  Constraint constraint;
};

std::vector<Case> make_cases() {
  using Kind = Constraint::Kind;
  std::string fields;
  for (int i = 0; i < 33; ++i) {
    const std::string types[] = {
        R"({"type":"string"})", R"({"type":"integer"})", R"({"type":"boolean"})",
        R"({"type":"array","items":{"type":"string"}})", R"({"enum":["low","high"]})"};
    fields += "\"field_" + std::to_string(i) + "\":" + types[i % 5] + ",";
  }
  Constraint tools = make_constraint(
      Kind::kToolCalls,
      R"([{"type":"function","function":{"name":"get_weather","strict":true,"parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1,"maximum":14}},"required":["city","days"]}}},{"type":"function","function":{"name":"search","strict":true,"parameters":{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}}}])");
  tools.tool_calls.required = tools.tool_calls.opened = true;
  return {
      {"small schema",
       make_constraint(
           Kind::kJsonSchema,
           R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}}},"required":["name","age","tags"]})")},
      {"33 fields, recursion",
       make_constraint(
           Kind::kJsonSchema,
           R"({"type":"object","properties":{)" + fields +
               R"("children":{"type":"array","items":{"$ref":"#"},"maxItems":3}},"required":["field_0","field_1","field_3","children"]})")},
      {"lengths, patterns, formats",
       make_constraint(
           Kind::kJsonSchema,
           R"({"type":"object","properties":{"id":{"type":"string","pattern":"^[a-z]{3}-[0-9]{4,8}$"},"when":{"type":"string","format":"date-time"},"title":{"type":"string","minLength":1,"maxLength":80},"score":{"type":"number","minimum":0,"maximum":100}},"required":["id","when","title","score"]})")},
      {"tool calls", tools},
      {"any JSON object", make_constraint(Kind::kJsonObject, "")},
      {"any JSON", make_constraint(Kind::kJsonSchema, "{}")},
      {"EBNF arithmetic",
       make_constraint(Kind::kGrammar,
                       "root ::= term ([+*/-] term)*\nterm ::= [0-9]+ | \"(\" root \")\"\n")},
      {"regex digits", make_constraint(Kind::kRegex, "[0-9]{3}-[0-9]{4}")},
      {"regex letters", make_constraint(Kind::kRegex, "[A-Z][a-z]+( [A-Z][a-z]+)*")},
      {"regex free text", make_constraint(Kind::kRegex, "[^\\n]{1,200}")},
  };
}

// Bits of `mask` that differ from what the matcher takes.
int64_t num_wrong(Matcher& matcher, std::span<const uint32_t> mask, int32_t vocab_size) {
  int64_t wrong = 0;
  for (int32_t id = 0; id < vocab_size; ++id) {
    const bool takes = matcher.accept(id);
    if (takes) matcher.rollback(1);
    const auto i = static_cast<size_t>(id);
    wrong += takes != ((mask[i / 32] >> (i % 32) & 1) != 0) ? 1 : 0;
  }
  return wrong;
}

struct Options {
  int num_answers = 20;
  std::string part_of_name;
  bool check = false;
};

void run(const Case& one, const codec::Tokenizer& tokenizer, GrammarStore& store,
         GrammarStore& copies, RandomWriter& writer, const Options& options) {
  const auto start = thread_us();
  const auto stored = store.acquire(one.constraint);
  const double compile_ms = us_since(start) / 1000;
  if (!stored) {
    std::printf("| %s | refused: %s |\n", one.name, stored.error().message().c_str());
    return;
  }
  const auto copy = copies.acquire(one.constraint);
  store.wait_for_masks();
  copies.wait_for_masks();
  std::vector<double> masks, misses, accepts;
  int64_t wrong = 0;
  std::vector<uint32_t> mask((static_cast<size_t>(tokenizer.vocab_size()) + 31) / 32);
  for (int i = 0; i < options.num_answers; ++i) {
    // Written under a copy, which has the same masks but does not remember them for this one.
    const auto answer = writer.write((*copy)->grammar, static_cast<uint64_t>(i + 1), 1.0f, 150);
    const auto matcher = std::move(Matcher::create((*stored)->grammar)).value();
    for (const int32_t token : answer.tokens) {
      const int64_t before = (*stored)->grammar->memory_bytes();
      auto at = thread_us();
      (void)matcher->fill_mask(mask).ok();
      masks.push_back(us_since(at));
      const bool is_new = (*stored)->grammar->memory_bytes() != before;
      if (is_new) misses.push_back(masks.back());
      if (is_new && options.check) wrong += num_wrong(*matcher, mask, tokenizer.vocab_size());
      at = thread_us();
      matcher->accept(token);
      accepts.push_back(us_since(at));
    }
  }
  const double mean = std::accumulate(masks.begin(), masks.end(), 0.0) /
                      static_cast<double>(std::max<size_t>(1, masks.size()));
  std::printf("| %s | %.0f | %.1f | %.1f | %.0f | %.0f | %zu | %.0f | %.0f | %.1f | %zu |\n",
              one.name, compile_ms, percentile(masks, 0.5), mean, percentile(masks, 0.99),
              percentile(masks, 1), misses.size(), percentile(misses, 0.5),
              percentile(misses, 0.99), percentile(accepts, 0.5), masks.size());
  if (options.check) std::printf("%s: %ld wrong bits\n", one.name, static_cast<long>(wrong));
  std::fflush(stdout);
}

}  // namespace
}  // namespace fathom::grammar

int main(int argc, char** argv) {
  using namespace fathom::grammar;
  if (argc < 2) {
    std::fprintf(
        stderr,
        "usage: grammar_bench TOKENIZER_JSON [ANSWERS [PART_OF_NAME | /REGEX/]] [--check]\n");
    return 2;
  }
  Options options;
  if (std::string_view(argv[argc - 1]) == "--check") {
    options.check = true;
    --argc;
  }
  if (argc > 2) options.num_answers = std::atoi(argv[2]);
  if (argc > 3) options.part_of_name = argv[3];
  const auto tokenizer = load_tokenizer(argv[1]);
  const auto store = make_store(*tokenizer);
  const auto copies = make_store(*tokenizer);
  RandomWriter writer(*tokenizer);
  const auto start = thread_us();
  (void)store->acquire(make_constraint(fathom::Constraint::Kind::kRegex, "a")).has_value();
  std::printf("%d words; vocabulary and first compile %.0f ms\n\n", tokenizer->vocab_size(),
              us_since(start) / 1000);
  std::printf(
      "| constraint | compile ms | mask us p50 | mean | p99 | max | new states | their us p50 | "
      "p99 | accept us p50 | tokens |\n");
  std::printf("|---|---|---|---|---|---|---|---|---|---|---|\n");
  std::vector<Case> cases = make_cases();
  const std::string& part = options.part_of_name;
  if (part.size() > 2 && part.front() == '/' && part.back() == '/') {
    const std::string regex = part.substr(1, part.size() - 2);
    cases = {{part.c_str(), make_constraint(fathom::Constraint::Kind::kRegex, regex)}};
  }
  for (const Case& one : cases) {
    if (std::string(one.name).find(options.part_of_name) == std::string::npos) continue;
    run(one, *tokenizer, *store, *copies, writer, options);
  }
  return 0;
}
