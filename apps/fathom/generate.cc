// fathom generate: one question, or a file of them (generate_jsonl.cc).
#include <algorithm>
#include <cstdio>

#include "answer_loop.h"
#include "commands.h"
#include "decode_rate.h"
#include "failure.h"
#include "generate_jsonl.h"
#include "interrupt.h"
#include "memory_use.h"
#include "output.h"
#include "terminal_text.h"

namespace fathom::app {
namespace {

void print_stats(const std::vector<std::optional<Answer>>& answers) {
  int64_t tokens = 0, behind = 0;
  double first_ms = 0, last_ms = 0;
  for (const std::optional<Answer>& answer : answers) {
    if (answer->token_ids().empty()) continue;
    first_ms = tokens == 0 ? answer->ttft_ms() : std::min(first_ms, answer->ttft_ms());
    last_ms = std::max(last_ms, answer->e2e_ms());
    tokens += static_cast<int64_t>(answer->token_ids().size());
    behind += static_cast<int64_t>(answer->token_ids().size()) - 1;
  }
  const Answer& first = *answers.front();
  std::fprintf(
      stderr, "[prompt %lld tokens, first token after %.0f ms, %lld tokens%s, seed %llu]\n",
      static_cast<long long>(first.num_prompt_tokens()), first_ms, static_cast<long long>(tokens),
      decode_rate(" at ", behind, first_ms, last_ms).c_str(),
      static_cast<unsigned long long>(first.seed().value_or(0)));
}

// All answers of one question; only the first is shown as it comes.
Status run_question(Engine& engine, Question question, bool json,
                    std::vector<std::optional<Answer>>* answers) {
  const bool stream = !json && question.sampling.n.value_or(1) == 1;
  question.chat.stream = stream;
  FATHOM_ASSIGN(PreparedQuestion prepared, prepare(engine, question));
  AnswerLoop loop(engine);
  answers->resize(static_cast<size_t>(prepared.request.n));
  FATHOM_TRY(loop.submit(0, prepared));
  TerminalText terminal;
  Status output;
  bool cancelled = false;
  while (!loop.idle()) {
    if (!cancelled && (interrupted() || !output.ok())) {
      loop.cancel_all();
      cancelled = true;
    }
    std::vector<AnswerLoop::Finished> finished =
        loop.step([&](int64_t, const codec::OutputEvent& event) {
          if (stream && output.ok()) output = terminal.show(event);
        });
    for (AnswerLoop::Finished& f : finished) {
      (*answers)[static_cast<size_t>(f.tag)].emplace(std::move(f.answer));
    }
  }
  FATHOM_TRY(std::move(output));
  return stream ? terminal.end() : Status();
}

Status show_whole(const Answer& answer) {
  using Kind = codec::OutputEvent::Kind;
  TerminalText terminal;
  FATHOM_TRY(terminal.show({.kind = Kind::kReasoning, .text = answer.reasoning()}));
  FATHOM_TRY(terminal.show({.kind = Kind::kText, .text = answer.text()}));
  for (const codec::ParsedCall& call : answer.calls()) {
    FATHOM_TRY(terminal.show({.kind = Kind::kCallBegin, .text = call.name}));
    FATHOM_TRY(terminal.show({.kind = Kind::kArguments, .text = call.arguments}));
    FATHOM_TRY(terminal.show({.kind = Kind::kCallEnd, .complete = call.complete}));
  }
  return terminal.end();
}

// What was not streamed.
Status print_answers(const Engine& engine, const std::vector<std::optional<Answer>>& answers,
                     const Question& question, bool json) {
  const MemoryUse memory = json ? memory_use(engine) : MemoryUse();
  if (!json && answers.size() == 1) return Status();
  for (size_t i = 0; i < answers.size(); ++i) {
    if (json) {
      JsonWriter writer;
      answers[i]->write(writer, question.id_json, static_cast<int>(i), &memory);
      FATHOM_TRY(print(writer.text() + "\n"));
      continue;
    }
    if (i > 0) FATHOM_TRY(print("---\n"));
    FATHOM_TRY(show_whole(*answers[i]));
  }
  return Status();
}

Status generate(const GenerateOptions& options) {
  if (options.jsonl_in) return generate_jsonl(options);
  FATHOM_ASSIGN(const Question question, read_question(options));
  FATHOM_ASSIGN(const std::unique_ptr<Engine> engine,
                start_engine(options.engine, start_hooks(options.quiet)));
  std::vector<std::optional<Answer>> answers;
  FATHOM_TRY(run_question(*engine, question, options.json, &answers));
  FATHOM_TRY(print_answers(*engine, answers, question, options.json));
  for (const std::optional<Answer>& answer : answers) {
    if (!answer->error().ok()) return Status(StatusCode::kInternal, answer->error().message());
  }
  if (!options.quiet && !options.json) print_stats(answers);
  if (interrupted()) return Status(StatusCode::kCancelled, "interrupted");
  return Status();
}

}  // namespace

int run_generate(const GenerateOptions& options) {
  const Status status = generate(options);
  return is_closed_output(status) ? kExitDone : finish(status);
}

}  // namespace fathom::app
