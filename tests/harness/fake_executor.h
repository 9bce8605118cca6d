// An executor over the fake model that carries out plans to the letter and distrusts them: every
// row that a plan lets it read (pages, windows, held rows, images) must be the one that the tokens
// imply.  The first contradiction is kept in fault().
//
// It models what a local executor keeps: pages by block, per slot the last W window rows of encoder
// and decoder and the last W entrance rows, and images of these with the page rows behind the last
// block border.  Steps run at wait(), so plans overlap as they do in asynchronous stepping.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/executor.h"

namespace fathom::harness {

struct FakeExecutorOptions {
  int32_t num_slots = 4;
  int32_t num_blocks = 64;
  int32_t block_tokens = 4;
  int64_t step_tokens = 0;  // most rows of a plan; 0: any
  int64_t window = 8;
  int eos_every = 40;
  int64_t image_bytes = 100;  // without decoder windows
  double step_error_rate = 0;
  double token_error_rate = 0;
  double accept_rate = 0.7;  // of each draft after those before it
  double seconds_per_round = 0.0001, seconds_per_maker = 0.00005;  // of making drafts
  double seconds_fixed = 0.001, seconds_per_row = 0.0001;          // what results report
  uint64_t seed = 1;                                               // of the injected errors
};

class FakeExecutor : public Executor {
 public:
  explicit FakeExecutor(const FakeExecutorOptions& options);

  void submit(const StepPlan& plan) override;
  void wait(StepResult& result) override { result = wait(); }
  StepResult wait();

  const std::string& fault() const { return fault_; }
  int num_images() const { return static_cast<int>(images_.size()); }
  int64_t num_rows() const { return num_rows_; }
  int64_t num_errors() const { return num_errors_; }

 private:
  // Rows by position, the last W of them.
  using Window = std::map<int64_t, uint64_t>;
  struct Image {
    bool is_garbage = false;
    int64_t position = 0;
    uint64_t row = 0;  // digest of the tokens below
    Window encoder, decoder, held;
    std::vector<uint64_t> tail;  // page rows from the last block border
  };
  struct Slot {
    bool is_started = false, is_poisoned = false;
    uint64_t seed = 0;
    bool has_image = false;
    int64_t num_prompt = 0, position = 0, min_tokens = 0;
    std::vector<int32_t> tokens;
    std::vector<int32_t> stop_ids;
    std::vector<MediaSegment> media;
    std::vector<uint64_t> rows;  // digests, one a token
    Window encoder, decoder, held;
    std::vector<BlockId> blocks;
    int64_t max_tokens = 0;
    std::vector<int32_t> drafts;  // for the next segment
    DraftOffer offer;
    bool is_over = false;
  };

  // With its ids and the slot's whole block table at that step.
  struct Segment : SegmentPlan {
    std::vector<int32_t> ids;
    std::vector<BlockId> blocks;
  };
  struct Step : StepPlan {
    std::vector<Segment> rows;
  };

  void fail(const std::string& what);
  void set_seconds(int64_t num_rows, StepResult& result) const;
  Step unpack(const StepPlan& plan);
  void check_overlap(const Step& running, const Step& next);
  void check_shape(const Step& plan);
  void prepare(const Step& plan);
  void run_segment(const Segment& segment, StepResult& result);
  // A segment that continues: how many drafts it checks, and their rows one by one.
  void choose_drafts(const Step& plan);
  void run_continuation(const Segment& segment, StepResult& result);
  void make_drafts(const SegmentPlan& segment, Slot& slot, SlotDrafts& drafts);
  void spoil_pages(const Segment& segment);
  void run_poisoned(const Segment& segment, StepResult& result);
  bool check_segment(const Segment& segment, Slot& slot);
  void run_pages(const Segment& segment, const Slot& slot);
  void run_decoder(const Segment& segment, Slot& slot);
  void sample(const Segment& segment, Slot& slot, StepResult& result);
  void add_prompt_logprobs(const Segment& segment, const Slot& slot, StepResult& result);
  void save(const Step& plan, StepResult& result);
  void push_token(Slot& slot, int32_t token);
  void push_row(Window& window, int64_t position, uint64_t row) const;
  void read_window(const Window& window, int64_t from, int64_t to, const Slot& slot, int64_t floor,
                   const char* what);
  uint64_t& page(BlockId block, int64_t position);
  bool happens(double rate);

  FakeExecutorOptions options_;
  std::mt19937_64 rng_;
  std::vector<uint64_t> pages_;
  std::vector<Slot> slots_;
  std::map<ImageId, Image> images_;
  std::set<ImageId> seen_images_;
  std::deque<Step> plans_;
  std::map<SlotId, std::vector<BlockId>> tables_;
  std::map<SlotId, int32_t> num_checked_;  // drafts of the step, by slot
  std::string fault_;
  int64_t step_ = 0, num_rows_ = 0, num_errors_ = 0;
};

}  // namespace fathom::harness
