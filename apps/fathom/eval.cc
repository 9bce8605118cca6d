// fathom eval: accuracy on a question set, or perplexity of a text.
#include <cmath>
#include <cstdio>

#include "answer_loop.h"
#include "commands.h"
#include "draft_report.h"
#include "eval_score.h"
#include "failure.h"
#include "interrupt.h"
#include "line_source.h"
#include "output.h"
#include "progress.h"
#include "runner/perplexity.h"

namespace fathom::app {
namespace {

struct Score {
  int64_t correct = 0;
  int64_t total = 0;  // scored
  int64_t skipped = 0;
};

// Categories in the order of the file.
using Scores = std::vector<std::pair<std::string, Score>>;

Score& score_of(Scores* scores, const std::string& category) {
  for (auto& [name, score] : *scores) {
    if (name == category) return score;
  }
  return scores->emplace_back(category, Score{}).second;
}

Result<std::vector<EvalItem>> read_set(const EvalOptions& options) {
  const std::string& file = *options.set_file;
  FATHOM_ASSIGN(LineSource lines, LineSource::open(file));
  std::vector<EvalItem> items;
  Scores seen;
  std::string line;
  while (true) {
    FATHOM_ASSIGN(const bool more, lines.next(&line));
    if (!more) break;
    Result<EvalItem> item = parse_eval_item(line);
    if (!item) {
      return std::move(item).error().with_context(file + " line " +
                                                  std::to_string(lines.line_number()));
    }
    if (!options.category.empty() && item->category != options.category) continue;
    int64_t& count = score_of(&seen, item->category).total;
    if (options.limit == 0 || count < options.limit) items.push_back(*std::move(item));
    ++count;
  }
  if (items.empty()) {
    return wrong_use(file + ": no questions" +
                     (options.category.empty() ? "" : " of category " + options.category));
  }
  return items;
}

Result<PreparedQuestion> prepare_item(const Engine& engine, const EvalItem& item) {
  Question q;
  q.kind = Question::Kind::kRaw;
  q.prompt = item.prompt;
  q.sampling.temperature = 0.0f;
  q.sampling.top_p = 1.0f;
  const size_t reference = engine.tokenizer->encode(item.reference, true).size();
  q.sampling.max_tokens = static_cast<int32_t>(static_cast<double>(reference) * 1.25 + 12);
  return prepare(engine, q);
}

class EvalRun {
 public:
  EvalRun(Engine& engine, const std::vector<EvalItem>& items, const EvalOptions& options)
      : engine_(engine), items_(items), options_(options), loop_(engine), texts_(items.size()) {}

  Status run() {
    Progress progress("eval", static_cast<int64_t>(items_.size()), options_.json);
    const auto enough = static_cast<size_t>(2 * options_.engine.max_batch);
    size_t next = 0;
    while (next < items_.size() || !loop_.idle()) {
      if (interrupted()) return Status(StatusCode::kCancelled, "interrupted");
      for (; next < items_.size() && loop_.num_running() < enough; ++next) {
        FATHOM_TRY(start(next));
      }
      for (const AnswerLoop::Finished& f : loop_.step(nullptr)) FATHOM_TRY(take(f));
      progress.update(num_done_, num_tokens_);
    }
    return Status();
  }
  const Scores& scores() const { return scores_; }

  // {"id", "text", "correct"} of each answer, in the order of the set.
  Status write_answers(const std::string& file) const {
    FATHOM_ASSIGN(OutputFile out, OutputFile::create(file));
    for (size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].has_image) continue;
      JsonWriter json;
      json.begin_object().member("id", items_[i].id).member("text", texts_[i]);
      json.member("correct", is_right(items_[i], texts_[i])).end_object();
      FATHOM_TRY(out.write(json.text() + "\n"));
    }
    return out.commit();
  }

 private:
  Status start(size_t index) {
    const EvalItem& item = items_[index];
    Score& score = score_of(&scores_, item.category);
    if (item.has_image) {
      ++score.skipped;
      ++num_done_;
      return Status();
    }
    Result<PreparedQuestion> question = prepare_item(engine_, item);
    if (!question) return std::move(question).error().with_context(item.id);
    return loop_.submit(static_cast<int64_t>(index), *question).with_context(item.id);
  }

  Status take(const AnswerLoop::Finished& finished) {
    const auto index = static_cast<size_t>(finished.tag);
    const Answer& answer = finished.answer;
    if (!answer.error().ok()) return Status(answer.error()).with_context(items_[index].id);
    texts_[index] = answer.text();
    Score& score = score_of(&scores_, items_[index].category);
    ++score.total;
    if (is_right(items_[index], answer.text())) ++score.correct;
    ++num_done_;
    num_tokens_ += static_cast<int64_t>(answer.token_ids().size());
    return Status();
  }

  Engine& engine_;
  const std::vector<EvalItem>& items_;
  const EvalOptions& options_;
  AnswerLoop loop_;
  Scores scores_;
  std::vector<std::string> texts_;
  int64_t num_done_ = 0;
  int64_t num_tokens_ = 0;
};

void write_score(JsonWriter& json, const Score& score) {
  json.begin_object().member("correct", score.correct).member("total", score.total);
  json.member("skipped", score.skipped).end_object();
}

std::string report(const Scores& scores, const DraftStats& drafts, bool as_json) {
  Score all;
  JsonWriter json;
  json.begin_object().key("accuracy").begin_object();
  std::string table;
  const auto add_row = [&table](const std::string& name, const Score& s) {
    char row[160];
    std::snprintf(row, sizeof row, "%-12s %5lld / %-5lld", name.substr(0, 60).c_str(),
                  static_cast<long long>(s.correct), static_cast<long long>(s.total));
    table += row;
    if (s.skipped > 0) table += "  " + std::to_string(s.skipped) + " skipped (images)";
    table += "\n";
  };
  for (const auto& [name, score] : scores) {
    write_score(json.key(name), score);
    add_row(name, score);
    all.correct += score.correct;
    all.total += score.total;
    all.skipped += score.skipped;
  }
  add_row("all", all);
  write_score(json.end_object().key("total"), all);
  write_drafts(json.key("drafts"), drafts);
  json.end_object();
  return as_json ? json.text() + "\n" : table;
}

Status measure_accuracy(const EvalOptions& options) {
  FATHOM_ASSIGN(const std::vector<EvalItem> items, read_set(options));
  FATHOM_ASSIGN(const std::unique_ptr<Engine> engine, start_engine(options.engine));
  EvalRun run(*engine, items, options);
  FATHOM_TRY(run.run());
  if (options.answers_file) FATHOM_TRY(run.write_answers(*options.answers_file));
  return print(report(run.scores(), engine->requests->stats().drafts, options.json));
}

Status measure_perplexity(const EvalOptions& options) {
  const std::string& file = *options.perplexity_file;
  FATHOM_ASSIGN(const std::string text, read_text(file));
  FATHOM_TRY(check_utf8(text, file));
  FATHOM_ASSIGN(const std::unique_ptr<Engine> engine, start_engine(options.engine));
  std::vector<int32_t> ids = engine->tokenizer->encode(text, /*recognize_added=*/false);
  if (options.limit > 0 && options.limit < static_cast<int64_t>(ids.size())) {
    ids.resize(static_cast<size_t>(options.limit));
  }
  if (ids.empty()) return wrong_use(file + ": is empty; give a text");
  Progress progress("perplexity, tokens", static_cast<int64_t>(ids.size()), options.json);
  FATHOM_ASSIGN(const runner::TextLoss loss,
                runner::text_loss(*engine->loaded.model, ids, options.engine.chunk_tokens,
                                  [&progress](int64_t done) {
                                    progress.update(done, done);
                                    return !interrupted();
                                  }));
  const double perplexity = std::exp(loss.sum / static_cast<double>(loss.num_tokens));
  if (!options.json) {
    char line[80];
    std::snprintf(line, sizeof line, "perplexity %.4f over %lld tokens\n", perplexity,
                  static_cast<long long>(loss.num_tokens));
    return print(line);
  }
  JsonWriter json;
  json.begin_object().member("perplexity", perplexity).member("tokens", loss.num_tokens);
  return print(json.end_object().text() + "\n");
}

}  // namespace

int run_eval(const EvalOptions& options) {
  const Status status = options.set_file ? measure_accuracy(options) : measure_perplexity(options);
  return is_closed_output(status) ? kExitDone : finish(status);
}

}  // namespace fathom::app
