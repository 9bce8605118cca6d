// Runs questions through the engine and collects their answers: what every command that
// generates has in common.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "answer.h"
#include "engine.h"
#include "prompt.h"

namespace fathom::app {

// Thread: one.  Borrows the engine.
class AnswerLoop {
 public:
  struct Finished {
    int64_t tag;
    Answer answer;
  };
  using OnSaid = std::function<void(int64_t tag, const codec::OutputEvent& event)>;

  explicit AnswerLoop(Engine& engine) : engine_(engine) {}

  // Queues the n answers to the question; `tag`, `tag` + 1 and so on name them in what comes back.
  Status submit(int64_t tag, const PreparedQuestion& question);
  // One step of the engine: what the answers say, as it comes, then those that ended.
  std::vector<Finished> step(const OnSaid& on_said);
  // Ends what runs; their answers come from the next step with what they have.
  void cancel_all();
  bool idle() const { return running_.empty(); }
  size_t num_running() const { return running_.size(); }

 private:
  Engine& engine_;
  std::map<std::pair<RequestId, int32_t>, Finished> running_;  // by sample
};

}  // namespace fathom::app
