// Measures what steps cost on this machine, and keeps it in a file.
#pragma once

#include <filesystem>

#include "core/cost_table.h"
#include "core/executor.h"
#include "fathom/status.h"

namespace fathom::runner {

struct CostMeasurement {
  int64_t max_rows = 512;  // of a prompt in a step
  int32_t num_slots = 1;
  int32_t num_blocks = 0;  // that may be written: nothing in them counts yet
  int32_t block_tokens = 0;
  int64_t max_context = 0;  // positions; 0: as far as blocks go
  int32_t vocab_size = 0;
  int32_t max_draft = 0;  // as the executor has it
  double budget_s = 20;   // about the most that it takes; half of it for prompts
};

// Runs steps of prompts (1, 2, 4 ... max_rows rows of one in slot 0), then steps of one to
// num_slots sequences that decode, without drafts and with, at contexts from short to long, each
// three or seven times after one that does not count (once where steps are slow), and takes the
// best.  What the budget does not reach is left out, and all decodes where it does not reach
// max_draft drafts.  No step may be in flight; the slots' sequences are gone afterwards. Errors:
// those of a step; kInvalidArgument if not one block can be used.
Result<StepCosts> measure_costs(Executor& executor, const CostMeasurement& measurement);

// A table and the load of its machine just before it was measured: threads that ran or waited, a
// CPU.
struct KeptCosts {
  StepCosts costs;
  double load = 0;
};

// Whether the machine was busy with other things then and is much less so now.  What is measured
// beside others is not only slower, which the steps that run correct: its long steps, which are
// interrupted more, stand badly beside its short ones.
bool is_from_busier_machine(const KeptCosts& kept, double load_now);

// A text file of our own. Reading checks everything: kNotFound if there is no file, kDataLoss if it
// is not such a table. Writing makes folders and replaces the file at once.
Result<KeptCosts> read_cost_table(const std::filesystem::path& file);
Status write_cost_table(const std::filesystem::path& file, const KeptCosts& kept);

}  // namespace fathom::runner
