// Measures what steps cost on this machine, and keeps it in a file.
#pragma once

#include <filesystem>

#include "core/cost_table.h"
#include "core/executor.h"
#include "fathom/status.h"

namespace fathom::runner {

struct CostMeasurement {
  int64_t max_rows = 512;  // of a step
  int32_t num_blocks = 0;  // that may be written: nothing in them counts yet
  int32_t block_tokens = 0;
  int32_t vocab_size = 0;
  double budget_s = 20;  // no larger steps once this much time has been spent
};

// Runs steps of 1, 2, 4 ... max_rows rows of one prompt in slot 0 through all layers, each three
// times after one that does not count, and takes the best. No step may be in flight.
// Errors: those of a step; kInvalidArgument if not one block can be used.
Result<CostTable> measure_costs(Executor& executor, const CostMeasurement& measurement);

// A text file of our own. Reading checks everything: kNotFound if there is no file, kDataLoss if it
// is not such a table. Writing makes folders and replaces the file at once.
Result<CostTable> read_cost_table(const std::filesystem::path& file);
Status write_cost_table(const std::filesystem::path& file, const CostTable& table);

}  // namespace fathom::runner
