#include "bench_prompts.h"

#include <algorithm>
#include <utility>

#include "codec/tokenizer.h"
#include "eval_score.h"
#include "failure.h"
#include "line_source.h"
#include "output.h"

namespace fathom::app {

PromptMaker::PromptMaker(const Engine& engine) : bos_(engine.config().bos_token_id) {
  for (int32_t id = 0; id < engine.tokenizer->vocab_size(); ++id) {
    if (!engine.tokenizer->is_added(id)) plain_.push_back(id);
  }
  if (plain_.empty()) plain_.push_back(bos_);
}

Result<PromptMaker> PromptMaker::create(const std::optional<std::string>& file,
                                        const Engine& engine) {
  PromptMaker maker(engine);
  if (!file) return maker;
  if (file->ends_with(".jsonl")) {
    FATHOM_TRY(maker.read_questions(*file, engine));
    return maker;
  }
  FATHOM_ASSIGN(const std::string text, read_text(*file));
  FATHOM_TRY(check_utf8(text, *file));
  maker.text_ = engine.tokenizer->encode(text, /*recognize_added=*/false);
  if (maker.text_.empty()) return wrong_use(*file + ": is empty; give a text");
  return maker;
}

Status PromptMaker::read_questions(const std::string& file, const Engine& engine) {
  FATHOM_ASSIGN(LineSource lines, LineSource::open(file));
  std::string line;
  while (true) {
    FATHOM_ASSIGN(const bool more, lines.next(&line));
    if (!more) break;
    Result<EvalItem> item = parse_eval_item(line);
    if (!item) {
      return std::move(item).error().with_context(file + " line " +
                                                  std::to_string(lines.line_number()));
    }
    if (item->has_image) continue;
    questions_.push_back(engine.tokenizer->encode(item->prompt, /*recognize_added=*/true));
    if (questions_.back().empty()) questions_.pop_back();
  }
  if (questions_.empty()) return wrong_use(file + ": no questions without images");
  // Every part of a run sees all kinds of questions.
  std::shuffle(questions_.begin(), questions_.end(), random_);
  return Status();
}

std::vector<int32_t> PromptMaker::make(int tokens) {
  if (has_questions()) return questions_[next_question_++ % questions_.size()];
  std::vector<int32_t> ids(1, bos_);
  size_t at = text_.empty() ? 0 : random_() % text_.size();
  while (static_cast<int>(ids.size()) < tokens) {
    if (text_.empty()) {
      ids.push_back(plain_[random_() % plain_.size()]);
    } else {
      ids.push_back(text_[at++ % text_.size()]);
    }
  }
  ids.resize(static_cast<size_t>(tokens));
  return ids;
}

Result<std::optional<Request>> Rounds::next(int user) {
  if (static_cast<size_t>(user) >= asked_.size()) asked_.resize(static_cast<size_t>(user) + 1);
  if (asked_[static_cast<size_t>(user)]++ >= rounds_) return std::optional<Request>();
  Request request;
  request.prompt = prompts_.make(tokens_[next_++ % tokens_.size()]);
  request.params.temperature = 0;
  request.params.ignore_eos = !prompts_.has_questions();
  request.params.max_tokens = output_;
  return std::optional<Request>(std::move(request));
}

}  // namespace fathom::app
