// The tensors of a checkpoint in the released safetensors format, used where they lie.
//
// A checkpoint is one model.safetensors or model.safetensors.index.json with its shards,
// memory-mapped read-only: nothing is copied, and pages are read from disk when first touched
// (experts and Engram tables may never be).  Or it lives in memory (bench, tests).  Views stay
// valid as long as the Checkpoint does.  Immutable after opening, so any thread may read.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fathom/status.h"
#include "tensor/tensor_view.h"

namespace fathom::weights {

struct NamedTensor {
  std::string name;
  TensorView view;
  std::string file;  // where it lies, for error messages; "memory" if it has no file
};

class Checkpoint {
 public:
  // Opens the folder.  Headers are checked in full before any view exists: sizes, overlaps, dtypes,
  // duplicates, truncation.  Errors name file, tensor, expected and found.
  static Result<Checkpoint> open(const std::filesystem::path& dir);

  // Takes tensors that somebody else made; `storage` keeps their bytes alive.
  static Checkpoint from_memory(std::vector<NamedTensor> tensors, std::shared_ptr<void> storage);

  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  // nullptr if there is none.
  const NamedTensor* find(std::string_view name) const;
  // All tensors, by name.
  std::span<const NamedTensor> tensors() const;
  int64_t total_bytes() const;
  // Of these, what this process has in memory by now; nullopt where the system does not say.
  std::optional<int64_t> resident_bytes() const;
  // The folder, or "memory".
  const std::string& origin() const;

 private:
  struct Impl;
  explicit Checkpoint(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fathom::weights
