#include "assembly/step_costs.h"

#include <cstdlib>

#include "device/cpu_features.h"

namespace fathom::assembly {

double machine_load() {
  double load = 0;
  const int cpus = cpu_info().num_cpus;
  return getloadavg(&load, 1) == 1 && cpus > 0 ? load / cpus : 0;
}

Result<StepCosts> load_step_costs(const StepCostSource& source, Executor& executor) {
  Result<runner::KeptCosts> kept = Status(StatusCode::kNotFound, "nothing is kept");
  if (!source.file.empty() && !source.measure_again) {
    kept = runner::read_cost_table(source.file);
  }
  const bool again = kept && runner::is_from_busier_machine(*kept, source.load);
  if (kept && !(again && source.may_measure)) return std::move(kept->costs);
  if (!source.may_measure) return StepCosts();
  if (source.on_measure) source.on_measure(source.measurement.budget_s, again);
  FATHOM_ASSIGN(StepCosts costs, runner::measure_costs(executor, source.measurement));
  if (!source.file.empty()) {
    static_cast<void>(runner::write_cost_table(source.file, {costs, source.load}));
  }
  return costs;
}

}  // namespace fathom::assembly
