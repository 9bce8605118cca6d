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

#include "core/draft_choice.h"
#include "core/executor.h"
#include "grammar/grammar_store.h"
#include "kvtier/paged_storage.h"
#include "model/model.h"
#include "runner/draft_round.h"
#include "runner/mask_filler.h"
#include "runner/slot.h"
#include "runner/slot_sampler.h"

namespace fathom::runner {

struct ExecutorOptions {
  int32_t num_slots = 16;
  int32_t num_blocks = 1;
  bool asynchronous = true;
  // Drafts that plans ask for at most: 0 keeps no draft windows, and drafts nothing.
  int32_t max_draft = 0;
  std::vector<float> draft_temperatures = {};  // DraftRound
  AcceptHook accept_hook = {};                 // benchmarks only
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
  bool is_lost() const override;

 private:
  LocalExecutor(model::Model& model, const ExecutorOptions& options,
                std::unique_ptr<kvtier::PagedStorage> storage, std::vector<Buffer> states);
  void work();
  void run(const StepPlan& plan, StepResult& result);
  Status carry_out(const StepPlan& plan, StepResult& result);
  void prepare(const StepPlan& plan);
  void start_guide(const SlotStart& start, Slot& slot) const;
  void sample(const SegmentPlan& plan, int32_t num_drafts, std::span<const RowChoice> rows,
              StepResult& result);
  Status draft(const StepPlan& plan, StepResult& result);
  void add_prompt_logprobs(const StepPlan& plan, const SegmentPlan& segment,
                           std::span<const RowChoice> rows, StepResult& result);
  Status save(const StepPlan& plan, StepResult& result);

  // ---- executor_batch.cc
  void choose_drafts(const StepPlan& plan);
  Status take_rows(const StepPlan& plan);
  Status show_rows();
  std::span<const RowChoice> sampled_rows(const SegmentPlan& plan,
                                          std::span<const RowChoice> rows) const;
  model::Segment bind(const StepPlan& plan, const SegmentPlan& segment, int32_t num_drafts);
  void bind_ids(const StepPlan& plan, const SegmentPlan& segment, int32_t num_drafts);
  static void bind_media(Slot& slot, model::Segment& segment);
  void begin_at(Slot& slot, int64_t position);

  model::Model& model_;
  std::unique_ptr<kvtier::PagedStorage> storage_;
  const grammar::GrammarStore* grammars_;
  MaskFiller masks_;
  const int32_t max_draft_;
  std::vector<Slot> slots_;
  SlotSampler sampler_;
  DraftRound draft_round_;
  DraftChooser chooser_;
  std::vector<DraftOffer> offers_;      // of the segments that continue
  std::vector<int32_t> num_drafts_;     // [segments] of the step that have rows
  std::vector<int32_t> chosen_drafts_;  // as offers_
  std::unordered_map<ImageId, std::vector<std::byte>> images_;
  std::atomic<int64_t> image_bytes_{0};
  model::Batch batch_;
  std::vector<RowChoice> rows_;  // what there is of the batch's rows of logits
  model::RowDraws draws_;        // of some of them, and which
  std::vector<int32_t> drawn_;
  std::vector<int64_t> drawn_rows_;
  model::DrawnLogprobs logprobs_;    // of rows_
  std::vector<int64_t> shown_rows_;  // those whose logits the host wants
  std::vector<const float*> shown_;

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
