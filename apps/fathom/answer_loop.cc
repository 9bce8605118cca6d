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
  if (!request.params.seed) request.params.seed = draw_seed();
  std::vector<Answer> answers;
  for (int32_t i = 0; i < request.n; ++i) {
    FATHOM_ASSIGN(Answer answer, Answer::create(*engine_.tokenizer, question.form,
                                                static_cast<int64_t>(request.prompt.size()),
                                                *request.params.seed + static_cast<uint64_t>(i)));
    answer.wants_logprobs = request.params.logprobs >= 0;
    answer.wants_prompt_logprobs = request.prompt_logprobs >= 0 && i == 0;
    answers.push_back(std::move(answer));
  }
  FATHOM_ASSIGN(const RequestId id, engine_.requests->submit(std::move(request)));
  for (Answer& answer : answers) {
    const auto index = static_cast<int32_t>(&answer - answers.data());
    running_.emplace(std::pair(id, index), Finished{tag + index, std::move(answer)});
  }
  return Status();
}

std::vector<AnswerLoop::Finished> AnswerLoop::step(const OnSaid& on_said) {
  std::vector<Finished> finished;
  std::vector<codec::OutputEvent> said;
  for (const TokenEvent& event : engine_.requests->wait(kPatience)) {
    const auto it = running_.find({event.request, event.index});
    if (it == running_.end()) continue;  // the last event of one that a stop string ended
    Answer& answer = it->second.answer;
    said.clear();
    answer.push(event, &said);
    for (const codec::OutputEvent& one : said) {
      if (on_said) on_said(it->second.tag, one);
    }
    if (!answer.is_done()) continue;
    if (event.finish == FinishReason::kNone) {
      engine_.requests->cancel(event.request, event.index);
    }
    finished.push_back(std::move(it->second));
    running_.erase(it);
  }
  return finished;
}

void AnswerLoop::cancel_all() {
  for (const auto& [sample, job] : running_) engine_.requests->cancel(sample.first, sample.second);
}

}  // namespace fathom::app
