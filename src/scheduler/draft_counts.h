// What became of drafts, for statistics.
//
// Thread: engine.
#pragma once

#include <array>
#include <cstdint>

#include "core/draft_choice.h"
#include "core/step_plan.h"
#include "fathom/engine.h"

namespace fathom::scheduler {

class DraftCounts {
 public:
  // `offered`: the drafts that the step checked, as they were announced. `is_cut`: the answer ended
  // with an accepted draft, so nobody knows about the one behind it.
  void add(const DraftOffer& offered, const SlotDrafts& drafts, bool is_cut);
  DraftStats stats() const;

 private:
  struct Class {
    int64_t num = 0, num_accepted = 0;
    double confidence = 0;  // sum
  };
  DraftStats stats_;
  std::array<Class, 10> classes_;  // of confidence
};

}  // namespace fathom::scheduler
