// An engine that does nothing but take time: what it checks of its drafts is decided by DraftSizing
// or fixed, what steps cost is given, and a draft is accepted with the chance that its confidence
// says. As in the real one a step is sized before the confidences of its drafts are known.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "scheduler/cost_model.h"
#include "scheduler/draft_sizing.h"

namespace fathom::scheduler {

// Seconds of steps by rows and of making drafts by sequences, by straight lines between points;
// dense where they jump.
struct DraftMachine {
  std::string name;
  CostTable steps, rounds;
  // What keeping rows for drafts takes of a step (bench/results/drafts.md).
  double keeping = 0.025;
  int64_t step_tokens = 512;
};

struct DraftTraffic {
  int32_t num_sequences = 1;
  double acceptance = 0.5;
  bool varies = false;  // confidences, about the acceptance; else they all are it
  // Sequences end and others come, whose prompts have up to so many tokens; 0: they go on for ever.
  int32_t prompt_tokens = 0;
  int32_t answer_tokens = 0;  // up to so many
  // Times the confidence: what is accepted is this much less likely than the module says.
  double overrated = 1;
};

class DraftEngine {
 public:
  // `fixed`: so many drafts of each sequence in each step; < 0: as DraftSizing says, which knows
  // what steps cost from the start or learns it.
  DraftEngine(const DraftMachine& machine, const DraftTraffic& traffic, int32_t fixed,
              bool is_measured);

  void run(int num_steps);
  // Of all steps since the last call.
  double take_tokens_per_s();
  int64_t num_rounds() const { return num_rounds_; }
  int64_t num_verified() const { return num_verified_; }

  DraftTraffic traffic;

 private:
  static constexpr int32_t kDrafts = 5;
  struct Sequence {
    int64_t prompt_left = 0, answer_left = 0;
    DraftOffer known, made;  // of the step before the last one, and of the last one
  };
  StepCosts measured() const;
  void start(Sequence& s);
  void step();
  DraftLoad load();
  int64_t check(Sequence& s, int32_t num_drafts);
  void make(Sequence& s);

  const DraftMachine machine_;
  CostModel steps_, rounds_;
  int32_t fixed_;
  std::mt19937_64 rng_{1};
  std::uniform_real_distribution<float> uniform_{0, 1};
  DraftSizing sizing_;
  DraftChooser chooser_;
  std::vector<Sequence> sequences_;
  std::vector<Sequence*> decoding_;
  std::vector<DraftOffer> offers_, made_;
  std::vector<int32_t> chosen_;
  double seconds_ = 0, tokens_ = 0;
  int64_t num_started_ = 0, num_rounds_ = 0, num_verified_ = 0;
};

}  // namespace fathom::scheduler
