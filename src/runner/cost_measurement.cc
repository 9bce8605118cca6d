#include <algorithm>
#include <limits>
#include <utility>

#include "runner/cost_table.h"

namespace fathom::runner {
namespace {

// Of each size, and of one whose steps take longer than kSlowStep seconds; the first does not
// count. A GPU's step is a graph, and as fast as in life, when steps like it came three times
// before. Sequences with an odd number of rows each end one group of the compressor more in every
// other step, so those are two kinds that take turns.
constexpr int kRuns = 4, kOddRuns = 8, kSlowRuns = 2;
constexpr double kSlowStep = 0.1;
int runs_of(double step_s) { return step_s > kSlowStep ? kSlowRuns : kRuns; }
// Contexts of decoding sequences.
constexpr int64_t kContexts[] = {256, 4096, 32768, 262144};

// Ids differ, so that experts and tables are read as in life.
std::vector<int32_t> some_ids(int64_t n, int32_t vocab_size, uint64_t seed) {
  uint64_t random = 88172645463325252u + 977 * seed;
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < n; ++i) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    ids.push_back(static_cast<int32_t>(random % static_cast<uint64_t>(vocab_size)));
  }
  return ids;
}

// A prompt of `rows` ids from nothing.
StepPlan prompt_plan(int64_t rows, const CostMeasurement& m) {
  StepPlan plan;
  SlotStart& start = plan.starts.emplace_back();
  start.slot = 0;
  start.max_tokens = 1;
  start.params.temperature = 0;
  start.prompt = some_ids(rows, m.vocab_size, 0);
  plan.ids = start.prompt;
  SegmentPlan& segment = plan.segments.emplace_back();
  segment.slot = 0;
  segment.num_rows = static_cast<int32_t>(rows);
  segment.num_blocks = static_cast<int32_t>((rows + m.block_tokens - 1) / m.block_tokens);
  for (BlockId block = 0; block < segment.num_blocks; ++block) plan.blocks.push_back(block);
  segment.sample = true;
  return plan;
}

// Sequences that have so many tokens behind them, with one row each.  They share the blocks of
// what is behind, which are only read; what is in them does not matter for the time.
class Decodes {
 public:
  Decodes(Executor& executor, const CostMeasurement& m, int64_t context, int32_t num_sequences)
      : executor_(executor), m_(m), context_(context), num_(num_sequences) {}

  // Blocks for all steps of a size and one more, each as far as drafts bring it.
  static int64_t own_blocks(const CostMeasurement& m) {
    return ((kOddRuns + 1) * (1 + m.max_draft)) / m.block_tokens + 2;
  }

  Status start(int32_t next_drafts, StepResult& result) const {
    StepPlan plan;
    const int64_t num_shared = context_ / m_.block_tokens, num_own = own_blocks(m_);
    for (SlotId slot = 0; slot < num_; ++slot) {
      SlotStart& start = plan.starts.emplace_back();
      start.slot = slot;
      start.max_tokens = 1 << 16;
      start.params.temperature = 0;
      start.prompt = some_ids(context_ + 1, m_.vocab_size, static_cast<uint64_t>(slot));
      SegmentPlan& segment = plan.segments.emplace_back();
      segment.slot = slot;
      segment.start = segment.window_floor = context_;
      segment.num_rows = 1;
      segment.first_id = slot;
      plan.ids.push_back(start.prompt.back());
      segment.first_block = static_cast<int32_t>(plan.blocks.size());
      segment.num_blocks = static_cast<int32_t>(num_shared + num_own);
      for (int64_t i = 0; i < num_shared; ++i) plan.blocks.push_back(static_cast<BlockId>(i));
      for (int64_t i = 0; i < num_own; ++i) {
        plan.blocks.push_back(static_cast<BlockId>(num_shared + slot * num_own + i));
      }
      segment.sample = true;
      segment.next_drafts = next_drafts;
    }
    executor_.submit(plan);
    executor_.wait(result);
    return result.error;
  }

  Status step(int32_t num_drafts, int32_t next_drafts, StepResult& result) const {
    StepPlan plan;
    plan.keeps_draft_rows = next_drafts > 0;  // as where drafts are not worth it
    for (SlotId slot = 0; slot < num_; ++slot) {
      SegmentPlan& segment = plan.segments.emplace_back();
      segment.slot = slot;
      segment.start = context_ + 1;
      segment.window_floor = context_;
      segment.num_rows = 1 + num_drafts;
      segment.first_id = static_cast<int32_t>(plan.ids.size());
      plan.ids.resize(plan.ids.size() + static_cast<size_t>(segment.num_rows), kPendingToken);
      segment.sample = segment.continues = true;
      segment.num_drafts = num_drafts;
      segment.next_drafts = next_drafts;
    }
    executor_.submit(plan);
    executor_.wait(result);
    return result.error;
  }

 private:
  Executor& executor_;
  const CostMeasurement& m_;
  int64_t context_;
  int32_t num_;
};

struct Size {
  int32_t sequences, drafts;  // checked
  int32_t next_drafts;        // made
  int64_t rows() const { return int64_t{sequences} * (1 + drafts); }
  int runs(double last_s) const {
    const int runs = runs_of(last_s);
    return runs == kRuns && drafts % 2 == 0 ? kOddRuns : runs;
  }
};

// Steps of rising numbers of rows, none of more than the scheduler makes: where all drafts of all
// sequences are too many, steps without and with as many as there is room for.
std::vector<Size> decode_sizes(const CostMeasurement& m) {
  const int64_t most_rows = std::max<int64_t>(m.max_rows, m.num_slots);
  std::vector<Size> sizes = {{1, 0, 0}};
  const auto add = [&](int32_t n, int64_t drafts) {
    if (n * (1 + drafts) > most_rows) drafts = 0;
    sizes.push_back({n, static_cast<int32_t>(drafts), m.max_draft});
  };
  for (const int32_t drafts : {1, 2, 3, 5}) {
    if (drafts < m.max_draft && 1 + drafts <= most_rows) sizes.push_back({1, drafts, drafts});
  }
  if (m.max_draft > 0) add(1, m.max_draft);
  for (int32_t n = 2; n < m.num_slots; n *= 2) add(n, m.max_draft);
  if (m.num_slots > 1) {
    add(m.num_slots, m.max_draft);
    const int64_t room = most_rows / m.num_slots - 1;
    if (room > 0 && room < m.max_draft) add(m.num_slots, room);
  }
  std::stable_sort(sizes.begin(), sizes.end(),
                   [](const Size& a, const Size& b) { return a.rows() < b.rows(); });
  return sizes;
}

// Sorts; of points of as many rows the dearest counts. Takes away noise that would make more rows
// cheaper than fewer.
void make_monotone(CostTable& curve) {
  const auto before = [](const CostPoint& a, const CostPoint& b) {
    return a.rows != b.rows ? a.rows < b.rows : a.seconds > b.seconds;
  };
  std::sort(curve.begin(), curve.end(), before);
  const auto same = [](const CostPoint& a, const CostPoint& b) { return a.rows == b.rows; };
  curve.erase(std::unique(curve.begin(), curve.end(), same), curve.end());
  for (size_t i = curve.size(); i-- > 1;) {
    curve[i - 1].seconds = std::min(curve[i - 1].seconds, curve[i].seconds);
  }
}

class Measurement {
 public:
  Measurement(Executor& executor, const CostMeasurement& m) : executor_(executor), m_(m) {}

  Status measure() {
    FATHOM_TRY(measure_chunks());
    std::vector<Size> sizes = decode_sizes(m_);
    for (const int64_t context : kContexts) {
      if (!fits(context)) break;
      FATHOM_TRY(measure_decodes(context, &sizes));
    }
    return Status();
  }
  StepCosts take() { return std::move(costs_); }

 private:
  // Whether a size that takes twice as long as the last one stays below `budget_s`.
  bool has_time(double budget_s, double last_s, int runs) const {
    return spent_ + 2 * (runs + 1) * last_s <= budget_s;
  }
  bool fits(int64_t context) const {
    const int64_t num_blocks = context / m_.block_tokens + m_.num_slots * Decodes::own_blocks(m_);
    return num_blocks <= m_.num_blocks && (m_.max_context == 0 || context + 64 <= m_.max_context);
  }

  Status measure_chunks() {
    const int64_t most = std::min(m_.max_rows, int64_t{m_.num_blocks} * m_.block_tokens);
    double best = 0;
    for (int64_t rows = 1; has_time(m_.budget_s / 2, best, runs_of(best));
         rows = std::min(2 * rows, most)) {
      const StepPlan plan = prompt_plan(rows, m_);
      const int runs = runs_of(best);
      best = std::numeric_limits<double>::infinity();
      for (int run = 0; run < runs; ++run) {
        executor_.submit(plan);
        executor_.wait(result_);
        if (!result_.error.ok()) return std::move(result_.error);
        spent_ += result_.seconds;
        if (run > 0) best = std::min(best, result_.seconds);
      }
      costs_.chunks.push_back({rows, std::max(best, 1e-9)});
      if (rows == most) break;
    }
    make_monotone(costs_.chunks);
    return Status();
  }

  // Where steps take long there is time for no draft, one and all.
  void leave_out_middle(std::vector<Size>* sizes) const {
    std::erase_if(*sizes, [&](const Size& size) {
      return size.sequences == 1 && size.drafts > 1 && size.drafts < m_.max_draft;
    });
  }

  // The first context says which sizes there was time for; another one counts if it has them all.
  Status measure_decodes(int64_t context, std::vector<Size>* sizes) {
    const bool is_first = costs_.decodes.empty();
    CostTable curve;
    double last_s = is_first ? 0 : costs_.decodes.front().seconds;
    for (size_t i = 0; i < sizes->size(); ++i) {
      const Size size = (*sizes)[i];
      if (!has_time(m_.budget_s, last_s, size.runs(last_s))) break;
      double seconds = 0, draft_seconds = 0;
      bool is_right = true;
      FATHOM_TRY(
          measure_decode(context, size, size.runs(last_s), &seconds, &draft_seconds, &is_right));
      if (!is_right) break;
      last_s = seconds;
      if (is_first && i == 0 && seconds > kSlowStep) leave_out_middle(sizes);
      curve.push_back({size.rows(), seconds, context});
      if (is_first && size.next_drafts == m_.max_draft && m_.max_draft > 0) {
        costs_.drafts.push_back({size.sequences, draft_seconds});
      }
    }
    // Without the size of all drafts nothing would be known of them, and the steps that run teach
    // it.
    if (is_first && m_.max_draft > 0 && costs_.drafts.empty()) curve.clear();
    if (is_first) sizes->resize(curve.size());
    if (curve.size() < sizes->size() || curve.empty()) return Status();
    make_monotone(curve);
    make_monotone(costs_.drafts);
    const CostTable& known = costs_.decodes;
    for (size_t i = 0; i < curve.size() && !is_first; ++i) {
      const CostPoint& nearer = known[known.size() - curve.size() + i];
      curve[i].seconds = std::max(curve[i].seconds, nearer.seconds);
    }
    costs_.decodes.insert(costs_.decodes.end(), curve.begin(), curve.end());
    return Status();
  }

  // `is_right`: the executor ran as many rows as were meant.
  Status measure_decode(int64_t context, const Size& size, int runs, double* seconds,
                        double* draft_seconds, bool* is_right) {
    Decodes decodes(executor_, m_, context, size.sequences);
    FATHOM_TRY(decodes.start(size.next_drafts, result_));
    *seconds = *draft_seconds = std::numeric_limits<double>::infinity();
    for (int run = 0; run < runs; ++run) {
      if (run >= kRuns && *seconds > kSlowStep) break;  // of the first size nothing was known
      spent_ += result_.seconds;
      FATHOM_TRY(decodes.step(size.drafts, size.next_drafts, result_));
      int64_t rows = size.sequences;
      for (const SlotDrafts& drafts : result_.drafts) rows += drafts.num_verified;
      *is_right &= rows == size.rows();
      if (run == 0) continue;
      *draft_seconds = std::min(*draft_seconds, std::max(result_.draft_seconds, 1e-9));
      *seconds = std::min(*seconds, std::max(result_.seconds - result_.draft_seconds, 1e-9));
    }
    spent_ += result_.seconds;
    return Status();
  }

  Executor& executor_;
  const CostMeasurement& m_;
  StepCosts costs_;
  StepResult result_;
  double spent_ = 0;
};

}  // namespace

Result<StepCosts> measure_costs(Executor& executor, const CostMeasurement& m) {
  if (m.max_rows < 1 || m.num_blocks < 1 || m.block_tokens < 1 || m.vocab_size < 1) {
    return Status(StatusCode::kInvalidArgument, "there is no block to measure steps with");
  }
  Measurement measurement(executor, m);
  if (Status error = measurement.measure(); !error.ok()) {
    return std::move(error).with_context("measuring steps");
  }
  return measurement.take();
}

}  // namespace fathom::runner
