#include "answer_loop.h"

#include <chrono>
#include <random>
#include <utility>

namespace fathom::app {
namespace {

// How long a step waits for an event, so that ctrl-C is seen soon.
constexpr std::chrono::milliseconds kPatience{20};

uint64_t draw_seed() {
  std::random_device device;
  return (uint64_t{device()} << 32 | device()) & 0x7fffffffffffffffu;
}

}  // namespace

Status AnswerLoop::submit(int64_t tag, const PreparedQuestion& question) {
  Request request = question.request;
  FATHOM_ASSIGN(Answer answer, Answer::create(*engine_.tokenizer, question.stop, question.thinking,
                                              static_cast<int64_t>(request.prompt.size())));
  answer.wants_logprobs = request.params.logprobs >= 0;
  if (!request.params.seed) request.params.seed = draw_seed();
  answer.seed = *request.params.seed;
  FATHOM_ASSIGN(const RequestId id, engine_.requests->submit(std::move(request)));
  running_.emplace(id, Finished{tag, std::move(answer)});
  return Status();
}

std::vector<AnswerLoop::Finished> AnswerLoop::step(const OnPiece& on_piece) {
  std::vector<Finished> finished;
  for (const TokenEvent& event : engine_.requests->wait(kPatience)) {
    const auto it = running_.find(event.request);
    if (it == running_.end()) continue;  // the last event of one that a stop string ended
    Answer& answer = it->second.answer;
    const AnswerPiece piece = answer.push(event);
    if (on_piece && (!piece.text.empty() || !piece.reasoning.empty())) {
      on_piece(it->second.tag, piece);
    }
    if (!answer.is_done()) continue;
    if (event.finish == FinishReason::kNone) engine_.requests->cancel(event.request);
    finished.push_back(std::move(it->second));
    running_.erase(it);
  }
  return finished;
}

void AnswerLoop::cancel_all() {
  for (const auto& [id, job] : running_) engine_.requests->cancel(id);
}

}  // namespace fathom::app
