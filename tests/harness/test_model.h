// A model with sequences that own their PAGES and STATE, for tests that call forward() directly.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/cpu_features.h"
#include "model/model.h"

namespace fathom::test {

// What models of tests run on: the CPU, or what tests/gpu sets.
inline Device* test_device = nullptr;

struct TestModelOptions {
  Isa isa = Isa::kReference;
  kernels::Numerics numerics = kernels::Numerics::kReference;
  int num_threads = 2;
  int32_t block_tokens = 16;
  Device* device = test_device;  // nullptr: the CPU
  model::PlacementOptions placement = {};
};

class TestModel {
 public:
  // Opens a folder.  Aborts with the reason if the checkpoint cannot be loaded.
  static TestModel open(const std::filesystem::path& dir, const TestModelOptions& options = {});
  // The preset ("t1", "k1") with the oracle's weights, made in memory.
  explicit TestModel(const std::string& preset, const TestModelOptions& options = {});

  model::Model& model() { return *model_; }
  const model::ModelConfig& config() const { return model_->config(); }

 private:
  explicit TestModel(const TestModelOptions& options);
  void create(model::ModelConfig config, std::vector<int32_t> class_map,
              const TestModelOptions& options);

  Device& device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<weights::Checkpoint> checkpoint_;
  std::unique_ptr<model::Model> model_;
};

struct StepOptions {
  int32_t num_logits = 1;
  bool replay = false;        // with prompt_tokens: the decoder runs on the last W of them
  int64_t prompt_tokens = 0;  // 0: exact
  int64_t replay_rows = 0;    // 0: the window
  int64_t window_floor = 0;   // as model::Segment
  bool drafts = false;        // keep the draft windows
  std::vector<uint8_t> is_image = {};
  std::vector<const Bf16*> embeddings = {};
  model::LayerProbe* probe = nullptr;
};

class TestSequence {
 public:
  explicit TestSequence(TestModel& model);

  // The next `ids` as a segment.  `ids` and `options` must live until the forward.
  model::Segment segment(std::span<const int32_t> ids, const StepOptions& options = {});
  // One forward of the next ids; logits [num_logits, vocab].
  std::vector<float> step(std::span<const int32_t> ids, const StepOptions& options = {});
  int64_t position() const { return position_; }
  // Takes the last `n` rows back, as those of drafts that were not accepted.
  void roll_back(int64_t n) {
    position_ -= n;
    draft_rows_.cut(position_);
  }
  // What a draft round after `anchor` wants to know.
  model::DraftSegment draft_segment(int32_t anchor, int32_t num_drafts) {
    return {state_.data(), position_, draft_rows_.floor(position_), anchor, num_drafts};
  }
  // STATE as an image (model/state_image.h).
  std::vector<std::byte> save(bool decoder_windows);
  // Continues from an image on a copy of the pages of the first `cached` positions of another
  // sequence; rows below `cached` will not be written again.
  void resume(std::span<const std::byte> image, const TestSequence& pages_of, int64_t cached);
  std::span<const std::byte> state() const { return state_; }
  // The bytes of all blocks in use, in order.
  std::vector<std::byte> pages() const;
  // Whether the rows of all complete groups below position() are those of the other, which is as
  // far.
  bool equal_pages(const TestSequence& other) const;

 private:
  TestModel& model_;
  std::vector<std::byte> state_;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::vector<const std::byte*> block_table_;
  void reserve(int64_t end);

  int64_t position_ = 0;
  int64_t pages_from_ = 0;
  model::DraftRows draft_rows_;
};

// One forward over several sequences.
std::vector<float> forward(TestModel& model, std::vector<model::Segment> segments,
                           model::LayerProbe* probe = nullptr, bool keep_draft_rows = false);

// One draft round in which every row gives its likeliest token: the model finds it, or the sampler
// in the logits.
std::vector<model::Draft> draft_greedily(TestModel& model,
                                         std::vector<model::DraftSegment> segments,
                                         bool sees_logits = false);

// Index of the greatest value, the lower one on ties.
int32_t argmax(std::span<const float> logits);

}  // namespace fathom::test
