#include "generate_jsonl.h"

#include <cstdio>
#include <deque>

#include "answer_loop.h"
#include "interrupt.h"
#include "jsonl_summary.h"
#include "line_source.h"
#include "memory_use.h"
#include "output.h"
#include "progress.h"

namespace fathom::app {
namespace {

// How far reading may run ahead of the oldest line that is not answered: bounds memory.
constexpr size_t kLinesAhead = 1024;

class JsonlRun {
 public:
  JsonlRun(Engine& engine, const GenerateOptions& options, LineSource& in, OutputFile& out)
      : engine_(engine), options_(options), in_(in), out_(out), loop_(engine) {}

  Status run(int64_t num_lines) {
    Progress progress("generate", num_lines, options_.quiet);
    bool more = true;
    while (more || !loop_.idle()) {
      if (interrupted()) return Status(StatusCode::kCancelled, "interrupted");
      const auto enough = static_cast<size_t>(2 * options_.engine.max_batch);
      // Whoever writes to a pipe may wait for our answer before the next line.
      while (more && loop_.num_running() < enough && lines_.size() < kLinesAhead &&
             (lines_.empty() || in_.ready())) {
        FATHOM_ASSIGN(more, read_line());
      }
      for (AnswerLoop::Finished& f : loop_.step(nullptr)) take(std::move(f));
      FATHOM_TRY(write_ready());
      progress.update(num_written_, num_tokens_);
    }
    return Status();
  }
  JsonlSummary& summary() { return summary_; }
  int64_t num_failed() const { return num_failed_; }
  int64_t num_written() const { return num_written_; }

 private:
  // A line of the file with its answers as they come.
  struct Line {
    std::string id_json;
    std::vector<std::string> results;  // by index; "": not yet
    size_t num_missing;
  };

  Result<bool> read_line() {
    std::string text;
    FATHOM_ASSIGN(const bool more, in_.next(&text));
    if (!more) return false;
    Question question;
    Status status = parse_question(text, in_.line_number(), options_, &question);
    Line line{question.id_json, {}, 0};
    if (status.ok()) status = submit(question, &line);
    if (!status.ok()) {
      ++num_failed_;
      line.results.assign(1, error_result(line.id_json, std::move(status)));
      line.num_missing = 0;
    }
    lines_.push_back(std::move(line));
    return true;
  }

  Status submit(const Question& question, Line* line) {
    FATHOM_ASSIGN(PreparedQuestion prepared, prepare(engine_, question));
    const auto n = static_cast<size_t>(prepared.request.n);
    FATHOM_TRY(loop_.submit(tag_of(lines_.size(), 0), prepared));
    line->results.resize(n);
    line->num_missing = n;
    return Status();
  }

  // The place of a line since the beginning, and the index of an answer of it, in one number.
  int64_t tag_of(size_t line, size_t index) const {
    return (num_removed_ + static_cast<int64_t>(line)) * kMaxAnswers + static_cast<int64_t>(index);
  }

  std::string error_result(const std::string& id_json, Status error) const {
    Answer answer = *Answer::create(*engine_.tokenizer, {}, 0, std::nullopt);
    answer.fail(std::move(error));
    JsonWriter json;
    answer.write(json, id_json, 0);
    return json.text();
  }

  void take(AnswerLoop::Finished finished) {
    Line& line = lines_[static_cast<size_t>(finished.tag / kMaxAnswers - num_removed_)];
    const int64_t index = finished.tag % kMaxAnswers;
    JsonWriter json;
    finished.answer.write(json, line.id_json, static_cast<int>(index));
    line.results[static_cast<size_t>(index)] = json.text();
    --line.num_missing;
    num_tokens_ += static_cast<int64_t>(finished.answer.token_ids().size());
    if (!finished.answer.error().ok()) ++num_failed_;
    summary_.add(finished.answer);
  }

  Status write_ready() {
    while (!lines_.empty() && lines_.front().num_missing == 0) {
      std::string text;
      for (const std::string& result : lines_.front().results) text += result + "\n";
      FATHOM_TRY(out_.write(text));
      lines_.pop_front();
      ++num_removed_;
      ++num_written_;
    }
    return Status();
  }

  static constexpr int64_t kMaxAnswers = 1 << 20;

  Engine& engine_;
  const GenerateOptions& options_;
  LineSource& in_;
  OutputFile& out_;
  AnswerLoop loop_;
  std::deque<Line> lines_;
  int64_t num_removed_ = 0;
  int64_t num_written_ = 0;
  int64_t num_failed_ = 0;
  int64_t num_tokens_ = 0;
  JsonlSummary summary_;
};

// One line for people on stderr; with --json the object, on standard output unless the answers
// are there.
Status report(const GenerateOptions& options, const Engine& engine, JsonlRun& run) {
  if (!options.json) {
    if (!options.quiet) std::fputs(run.summary().line(run.num_written()).c_str(), stderr);
    return Status();
  }
  const std::string json =
      run.summary().json(run.num_written(), run.num_failed(), memory_use(engine)) + "\n";
  if (options.jsonl_out.value_or("-") != "-") return print(json);
  std::fputs(json.c_str(), stderr);
  return Status();
}

}  // namespace

Status generate_jsonl(const GenerateOptions& options) {
  FATHOM_ASSIGN(LineSource in, LineSource::open(*options.jsonl_in));
  FATHOM_ASSIGN(OutputFile out, OutputFile::create(options.jsonl_out.value_or("-")));
  FATHOM_ASSIGN(const std::unique_ptr<Engine> engine,
                start_engine(options.engine, start_hooks(options.quiet)));
  JsonlRun run(*engine, options, in, out);
  FATHOM_TRY(run.run(count_lines(*options.jsonl_in)));
  FATHOM_TRY(out.commit());
  FATHOM_TRY(report(options, *engine, run));
  if (run.num_failed() == 0) return Status();
  return Status(StatusCode::kInternal,
                std::to_string(run.num_failed()) + " answers of " +
                    std::to_string(run.num_written()) + " lines failed; see \"error\" in " +
                    (options.jsonl_out.value_or("-") == "-" ? "the output" : *options.jsonl_out));
}

}  // namespace fathom::app
