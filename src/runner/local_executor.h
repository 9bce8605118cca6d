// The executor of one process: carries out steps on one model, on its own thread (rank-0).
//
// Owns the bytes: blocks of PAGES, STATE slots, saved STATE images, and per slot what sampling
// needs.  All but the images is taken at creation.  Steps never overlap; with `asynchronous` the
// next one waits in a queue while one runs, without it submit() runs the step itself (for
// debugging: the results are the same).
//
// What fails: no memory, or an exception from below, fails the step (StepResult::error), and the
// executor goes on with the next; its sequences must start again.  A NaN among a sequence's logits
// fails that sequence only (SampledToken::error).  An image for which there is no memory is not
// saved, and no result names it.
//
// Thread: submit and wait belong to one thread.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/executor.h"
#include "grammar/grammar_store.h"
#include "grammar/guide.h"
#include "kvtier/paged_storage.h"
#include "model/model.h"
#include "runner/mask_filler.h"
#include "sampler/sampler.h"

namespace fathom::runner {

struct ExecutorOptions {
  int32_t num_slots = 16;
  int32_t num_blocks = 1;
  bool asynchronous = true;
  // Of the grammars in plans; must outlive the executor.  nullptr: plans have none.
  const grammar::GrammarStore* grammars = nullptr;
};

class LocalExecutor : public Executor {
 public:
  // `model` must outlive the executor; nobody else may use it meanwhile.
  static Result<std::unique_ptr<LocalExecutor>> create(model::Model& model,
                                                       const ExecutorOptions& options);
  ~LocalExecutor() override;

  void submit(const StepPlan& plan) override;
  void wait(StepResult& result) override;

  // Memory of blocks, slots and saved images by now; nullopt where the system does not say.
  // Thread: any.
  std::optional<int64_t> cache_bytes() const;

 private:
  struct Slot {
    Buffer state;  // in memory of the model's device
    SamplingParams params;
    uint64_t seed = 0;
    std::vector<int32_t> prompt, output;
    std::vector<int32_t> stop_ids;
    std::vector<MediaSegment> media;
    std::vector<const std::byte*> blocks;  // the sequence's table, as far as it was sent
    // Of the segment being run.
    std::vector<int32_t> ids;
    std::vector<int32_t> ids_before;
    std::vector<uint8_t> is_image;
    std::vector<const Bf16*> embeddings;
    const std::vector<std::byte>* pending_image =
        nullptr;   // restored when a segment brings the blocks
    Status error;  // of a row that sampled nothing; the next sampled token reports it
    int32_t last_token = 0;
    int64_t position = 0;                   // rows computed
    std::unique_ptr<grammar::Guide> guide;  // nullptr: any token may come
  };

  LocalExecutor(model::Model& model, const ExecutorOptions& options,
                std::unique_ptr<kvtier::PagedStorage> storage, std::vector<Buffer> states);
  void work();
  void run(const StepPlan& plan, StepResult& result);
  Status carry_out(const StepPlan& plan, StepResult& result);
  void prepare(const StepPlan& plan);
  static std::span<const int32_t> forbidden_ends(const Slot& slot);
  void start_guide(const SlotStart& start, Slot& slot) const;
  model::Segment bind(const StepPlan& plan, const SegmentPlan& segment);
  static void bind_media(Slot& slot, model::Segment& segment);
  void begin_at(Slot& slot, int64_t position);
  SampledToken sample(const SegmentPlan& plan, std::span<const float> logits);
  void add_prompt_logprobs(const StepPlan& plan, const SegmentPlan& segment,
                           std::span<const float> logits, StepResult& result);
  Status save(const StepPlan& plan, StepResult& result);

  model::Model& model_;
  std::unique_ptr<kvtier::PagedStorage> storage_;
  sampler::Sampler sampler_;
  const grammar::GrammarStore* grammars_;
  MaskFiller masks_;
  std::vector<Slot> slots_;
  std::unordered_map<ImageId, std::vector<std::byte>> images_;
  std::atomic<int64_t> image_bytes_{0};
  std::vector<float> logits_;
  model::Batch batch_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  // By number of the step modulo their size.  A plan belongs to the caller, see Executor::submit.
  std::array<const StepPlan*, kMaxInFlight> plans_{};
  std::array<StepResult, kMaxInFlight> results_;
  int64_t num_submitted_ = 0, num_done_ = 0, num_taken_ = 0;
  bool stop_ = false;
  std::thread thread_;  // none if steps are synchronous
};

}  // namespace fathom::runner
