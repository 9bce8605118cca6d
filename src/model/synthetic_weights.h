// The bytes of made-up tensors, any rows of any tensor in any order.
//
// Every value comes from a counter-based stream (splitmix64) seeded by the tensor's name, so
// tensors can be made in pieces, by several threads, without keeping anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/config.h"
#include "model/synthetic.h"
#include "model/tensor_list.h"

namespace fathom::model {

// Rows [row_begin, row_end) of specs()[tensor_idx].
struct FillTask {
  size_t tensor_idx = 0;
  int64_t row_begin = 0;
  int64_t row_end = 0;
  int64_t bytes = 0;
};

// FNV-1a, 64 bits.
uint64_t fnv1a(std::string_view text);

class SyntheticWeights {
 public:
  SyntheticWeights(const ModelConfig& config, SyntheticKind kind, uint64_t seed);

  // expected_tensors(config)
  std::span<const TensorSpec> specs() const { return specs_; }
  // Cuts the tensor into tasks of about 4 MiB that fill() accepts, in order.
  void append_tasks(size_t tensor_idx, std::vector<FillTask>* tasks) const;
  // Writes task.bytes bytes.  Thread-safe.
  void fill(const FillTask& task, std::byte* out) const;
  // Runs fill() for all tasks on all cores; the bytes of task i go to out[i].
  void fill_all(std::span<const FillTask> tasks, std::span<std::byte* const> out) const;

 private:
  struct Recipe {
    float scale = 1;
    float offset = 0;
  };

  uint64_t stream_of(const TensorSpec& spec) const;
  Recipe recipe_of(const TensorSpec& spec) const;
  // Standard deviation that a random linear of `in` columns should have.
  static double linear_std(const TensorSpec& spec, int64_t in);

  void fill_plain(const TensorSpec& spec, const FillTask& task, std::byte* out) const;
  void fill_blocks(const TensorSpec& spec, const FillTask& task, std::byte* out) const;
  void fill_block_scales(const TensorSpec& weight, const FillTask& task, std::byte* out) const;
  void fill_groups(const TensorSpec& spec, const FillTask& task, std::byte* out) const;
  void fill_group_scales(const TensorSpec& weight, const FillTask& task, std::byte* out) const;
  void fill_codes(const TensorSpec& spec, const FillTask& task, std::byte* out) const;

  SyntheticKind kind_;
  uint64_t seed_;
  std::vector<TensorSpec> specs_;
};

}  // namespace fathom::model
