// What steps cost: read from the file that keeps it, or measured now.
#pragma once

#include <filesystem>
#include <functional>

#include "core/cost_table.h"
#include "core/executor.h"
#include "fathom/status.h"
#include "runner/cost_table.h"

namespace fathom::assembly {

// Told before steps are measured, which takes about `seconds`. `again`: what was kept is from a
// busier machine.
using MeasureHook = std::function<void(double seconds, bool again)>;

struct StepCostSource {
  std::filesystem::path file;  // empty: nothing is kept
  bool may_measure = false;
  bool measure_again = false;  // whatever is kept
  double load = 0;             // of this machine now: threads that run or wait, a CPU
  MeasureHook on_measure = nullptr;
  runner::CostMeasurement measurement;
};

// Threads that ran or waited in the last minute, a CPU; 0 if the system does not say.
double machine_load();

// Empty tables if nothing is kept and nothing may be measured.  A file that cannot be written is no
// error: the next start measures again.  Errors: those of a step.
Result<StepCosts> load_step_costs(const StepCostSource& source, Executor& executor);

}  // namespace fathom::assembly
