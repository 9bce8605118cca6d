// The port between the control plane and whatever computes: a local runner, a remote one, a fake in
// tests.
//
// Steps are carried out one after the other in the order of submission; at most two are in flight.
// Thread: one at a time calls; submit returns at once, wait blocks until the oldest step is done.
#pragma once

#include "core/step_plan.h"

namespace fathom {

class Executor {
 public:
  static constexpr int kMaxInFlight = 2;

  virtual ~Executor() = default;
  // `plan` must stay as it is until wait() has returned its result.
  virtual void submit(const StepPlan& plan) = 0;
  // Replaces what is in `result`, whose memory is used again.
  virtual void wait(StepResult& result) = 0;
  // Whether what it computes on is gone: no step will succeed any more.  Told after wait().
  virtual bool is_lost() const { return false; }
};

}  // namespace fathom
