#include "answer_loop.h"

#include <utility>

namespace fathom::app {

Status AnswerLoop::submit(int64_t tag, const PreparedQuestion& question) {
  const Request& request = question.request;
  FATHOM_ASSIGN(Answer answer, Answer::create(*engine_.tokenizer, question.stop, question.thinking,
                                              static_cast<int64_t>(request.prompt.size())));
  answer.wants_logprobs = request.params.logprobs >= 0;
  FATHOM_ASSIGN(const RequestId id, engine_.generator->submit(request));
  answer.seed = engine_.generator->seed_of(id);
  running_.emplace(id, Finished{tag, std::move(answer)});
  return Status();
}

std::vector<AnswerLoop::Finished> AnswerLoop::step(const OnPiece& on_piece) {
  std::vector<Finished> finished;
  for (const TokenEvent& event : engine_.generator->step()) {
    const auto it = running_.find(event.request);
    if (it == running_.end()) continue;  // the last event of one that a stop string ended
    Answer& answer = it->second.answer;
    const AnswerPiece piece = answer.push(event);
    if (on_piece && (!piece.text.empty() || !piece.reasoning.empty())) {
      on_piece(it->second.tag, piece);
    }
    if (!answer.is_done()) continue;
    if (event.finish == FinishReason::kNone) engine_.generator->cancel(event.request);
    finished.push_back(std::move(it->second));
    running_.erase(it);
  }
  return finished;
}

void AnswerLoop::cancel_all() {
  for (const auto& [id, job] : running_) engine_.generator->cancel(id);
}

}  // namespace fathom::app
