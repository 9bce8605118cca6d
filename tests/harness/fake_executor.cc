#include "harness/fake_executor.h"

#include <algorithm>
#include <utility>

#include "harness/fake_model.h"

namespace fathom::harness {
namespace {

// A decoder window row is told from an encoder's by its floor; no floor is so low.
constexpr int64_t kEncoder = -1;

std::string text(const char* what, int64_t value) { return what + std::to_string(value); }

}  // namespace

FakeExecutor::FakeExecutor(const FakeExecutorOptions& options)
    : options_(options),
      rng_(options.seed),
      pages_(static_cast<size_t>(options.num_blocks) * static_cast<size_t>(options.block_tokens)),
      slots_(static_cast<size_t>(options.num_slots)) {
  for (size_t i = 0; i < pages_.size(); ++i) pages_[i] = mix(0xbad, i);
}

void FakeExecutor::fail(const std::string& what) {
  if (fault_.empty()) fault_ = "step " + std::to_string(step_) + ": " + what;
}

uint64_t& FakeExecutor::page(BlockId block, int64_t position) {
  return pages_[static_cast<size_t>(block) * static_cast<size_t>(options_.block_tokens) +
                static_cast<size_t>(position % options_.block_tokens)];
}

bool FakeExecutor::happens(double rate) {
  return rate > 0 && std::uniform_real_distribution<double>(0, 1)(rng_) < rate;
}

void FakeExecutor::submit(const StepPlan& plan) {
  step_ = plan.step;
  if (plans_.size() >= kMaxInFlight) fail("too many steps in flight");
  Step step = unpack(plan);
  check_shape(step);
  if (!plans_.empty()) check_overlap(plans_.back(), step);
  plans_.push_back(std::move(step));
}

// Block tables as the executor keeps them: from their start, grown by what plans bring.
FakeExecutor::Step FakeExecutor::unpack(const StepPlan& plan) {
  Step step;
  static_cast<StepPlan&>(step) = plan;
  for (const SlotStart& start : plan.starts) tables_[start.slot].clear();
  for (const SegmentPlan& s : plan.segments) {
    Segment& segment = step.rows.emplace_back();
    static_cast<SegmentPlan&>(segment) = s;
    segment.ids.assign(plan.ids_of(s).begin(), plan.ids_of(s).end());
    std::vector<BlockId>& table = tables_[s.slot];
    table.insert(table.end(), plan.blocks_of(s).begin(), plan.blocks_of(s).end());
    segment.blocks = table;
  }
  return step;
}

void FakeExecutor::check_shape(const Step& plan) {
  std::set<SlotId> with_rows;
  int64_t rows = 0;
  if (plan.draft_capacity > 0) rows += plan.draft_capacity;
  for (const Segment& s : plan.rows) {
    rows += static_cast<int64_t>(s.ids.size()) - (plan.draft_capacity < 0 ? 0 : s.num_drafts);
    if (!with_rows.insert(s.slot).second) fail(text("two segments for slot ", s.slot));
    if (s.ids.empty()) fail(text("no rows for slot ", s.slot));
  }
  if (options_.step_tokens > 0 && rows > options_.step_tokens) fail(text("too many rows: ", rows));
  for (const StateLoad& load : plan.loads) {
    if (!with_rows.contains(load.slot)) fail(text("a load without rows for slot ", load.slot));
  }
  for (const SlotStart& start : plan.starts) {
    if (!with_rows.contains(start.slot)) fail(text("a start without rows for slot ", start.slot));
  }
}

// What a step in flight names is not given to another sequence.
void FakeExecutor::check_overlap(const Step& running, const Step& next) {
  std::set<SlotId> used, restarted;
  for (const Segment& s : running.rows) used.insert(s.slot);
  for (const StateSave& s : running.saves) used.insert(s.slot);
  for (const SlotStart& s : next.starts) {
    restarted.insert(s.slot);
    if (used.contains(s.slot)) fail(text("a slot in flight was given away: ", s.slot));
  }
  std::map<BlockId, std::set<SlotId>> readers;
  for (const Segment& s : running.rows) {
    for (const BlockId block : s.blocks) readers[block].insert(s.slot);
  }
  for (const Segment& s : next.rows) {
    for (size_t i = 0; i < s.blocks.size(); ++i) {
      const int64_t last = static_cast<int64_t>(i + 1) * options_.block_tokens - 1;
      if (last < std::max(s.start, s.pages_from)) continue;  // not written
      for (const SlotId reader : readers[s.blocks[i]]) {
        if (reader != s.slot || restarted.contains(s.slot)) {
          fail(text("a block in flight is written by another: ", s.blocks[i]));
        }
      }
    }
  }
}

StepResult FakeExecutor::wait() {
  const Step plan = std::move(plans_.front());
  plans_.pop_front();
  step_ = plan.step;
  StepResult result{.step = plan.step};
  const bool fails = happens(options_.step_error_rate);
  const bool before_anything = fails && happens(0.5);
  for (const ImageId image : plan.drops) {
    if (images_.erase(image) == 0) fail(text("dropped an image that is not there: ", image));
  }
  const int64_t rows_before = num_rows_;
  if (!before_anything) {
    prepare(plan);
    choose_drafts(plan);
    for (const Segment& segment : plan.rows) {
      if (segment.continues) {
        run_continuation(segment, result);
        continue;
      }
      num_rows_ += static_cast<int64_t>(segment.ids.size());
      run_segment(segment, result);
      if (segment.next_drafts == 0) continue;
      SlotDrafts drafts{.slot = segment.slot};
      make_drafts(segment, slots_[static_cast<size_t>(segment.slot)], drafts);
      result.drafts.push_back(drafts);
    }
    if (!fails) save(plan, result);
  }
  set_seconds(num_rows_ - rows_before, result);
  if (fails) {
    ++num_errors_;
    for (const Segment& s : plan.rows) slots_[static_cast<size_t>(s.slot)].is_poisoned = true;
    result = {.step = plan.step};
    result.error = Status(StatusCode::kInternal, "injected failure of a step");
  }
  return result;
}

void FakeExecutor::prepare(const Step& plan) {
  for (const SlotStart& start : plan.starts) {
    Slot& slot = slots_[static_cast<size_t>(start.slot)];
    slot = {};
    slot.is_started = true;
    slot.seed = start.seed;
    slot.num_prompt = static_cast<int64_t>(start.prompt.size());
    slot.min_tokens = start.params.min_tokens;
    slot.max_tokens = start.max_tokens;
    slot.stop_ids = start.stop_ids;
    slot.media = start.media;
    for (const int32_t token : start.prompt) push_token(slot, token);
    for (const int32_t token : start.output) push_token(slot, token);
  }
  for (const StateLoad& load : plan.loads) {
    Slot& slot = slots_[static_cast<size_t>(load.slot)];
    const auto found = images_.find(load.image);
    if (found == images_.end()) {
      fail(text("loaded an image that is not there: ", load.image));
      continue;
    }
    const Image& image = found->second;
    if (image.is_garbage) fail(text("loaded an image of a sequence that failed: ", load.image));
    const bool fits = image.position > 0 && image.position <= std::ssize(slot.rows) &&
                      slot.rows[static_cast<size_t>(image.position - 1)] == image.row;
    if (!fits) fail(text("loaded an image of other tokens: ", load.image));
    slot.has_image = true;
    slot.position = image.position;
    slot.encoder = image.encoder;
    slot.decoder = image.decoder;
    slot.held = image.held;
    const auto segment = std::find_if(plan.rows.begin(), plan.rows.end(),
                                      [&](const Segment& s) { return s.slot == load.slot; });
    if (segment == plan.rows.end()) continue;
    const int64_t border = image.position - std::ssize(image.tail);
    for (int64_t p = border; p < image.position; ++p) {
      page(segment->blocks[static_cast<size_t>(p / options_.block_tokens)], p) =
          image.tail[static_cast<size_t>(p - border)];
    }
  }
  for (const BlockCopy& copy : plan.copies) {
    for (int64_t i = 0; i < options_.block_tokens; ++i) page(copy.to, i) = page(copy.from, i);
  }
}

void FakeExecutor::push_token(Slot& slot, int32_t token) {
  const int64_t position = std::ssize(slot.tokens);
  uint64_t row = fake_row(slot.rows.empty() ? 0 : slot.rows.back(), token);
  for (const MediaSegment& m : slot.media) {
    if (position >= m.position && position < m.position + m.num_tokens) row = mix_media(row, m);
  }
  slot.rows.push_back(row);
  slot.tokens.push_back(token);
}

void FakeExecutor::push_row(Window& window, int64_t position, uint64_t row) const {
  window[position] = row;
  window.erase(window.begin(), window.lower_bound(position - options_.window + 1));
}

// Rows [from, to) must be there, and right.
void FakeExecutor::read_window(const Window& window, int64_t from, int64_t to, const Slot& slot,
                               int64_t floor, const char* what) {
  for (int64_t p = std::max<int64_t>(from, 0); p < to; ++p) {
    const uint64_t row = slot.rows[static_cast<size_t>(p)];
    const auto found = window.find(p);
    if (found == window.end()) {
      fail(std::string(what) + " has no row " + std::to_string(p));
    } else if (found->second != (floor == kEncoder ? row : fake_decoder_row(row, floor))) {
      fail(std::string(what) + " has a wrong row " + std::to_string(p));
    }
  }
}

bool FakeExecutor::check_segment(const Segment& s, Slot& slot) {
  const int64_t end = s.start + std::ssize(s.ids);
  // Windows that are filled by running their rows again.
  if (slot.position == 0 && !slot.has_image) slot.position = s.window_floor;
  if (!slot.is_started) {
    fail(text("rows for a slot that was not started: ", s.slot));
    return false;
  }
  if (s.start != slot.position) {
    fail("slot " + std::to_string(s.slot) + " is at " + std::to_string(slot.position) +
         ", the segment starts at " + std::to_string(s.start));
    return false;
  }
  for (int64_t p = s.start; p < end; ++p) {
    const int32_t id = s.ids[static_cast<size_t>(p - s.start)];
    const bool is_known = p < std::ssize(slot.tokens);
    if (!is_known || (id != kPendingToken && id != slot.tokens[static_cast<size_t>(p)])) {
      fail(text("a token is not the sequence's at position ", p));
      return false;
    }
  }
  const int64_t num_blocks = (end + options_.block_tokens - 1) / options_.block_tokens;
  if (std::ssize(s.blocks) != num_blocks ||
      std::set<BlockId>(s.blocks.begin(), s.blocks.end()).size() != s.blocks.size()) {
    fail(text("a block table of the wrong size for end ", end));
    return false;
  }
  for (const BlockId block : s.blocks) {
    if (block >= 0 && block < options_.num_blocks) continue;
    fail(text("no such block: ", block));
    return false;
  }
  const bool is_exact = s.decoder_start == 0 && s.decoder_floor == 0;
  if (!is_exact && (s.decoder_start != slot.num_prompt ||
                    s.decoder_floor != std::max<int64_t>(0, slot.num_prompt - options_.window))) {
    fail(text("wrong decoder bounds of slot ", s.slot));
  }
  if (s.sample && end != std::ssize(slot.tokens)) fail(text("sampled too early at ", end));
  return true;
}

void FakeExecutor::run_segment(const Segment& s, StepResult& result) {
  Slot& slot = slots_[static_cast<size_t>(s.slot)];
  if (slot.is_poisoned) {
    run_poisoned(s, result);
    return;
  }
  if (!check_segment(s, slot)) {
    if (s.sample) result.tokens.push_back({.slot = s.slot, .token = 0});
    return;
  }
  slot.blocks = s.blocks;
  run_pages(s, slot);
  // The decoder reads held rows before the encoder's new ones take their place.
  run_decoder(s, slot);
  const int64_t end = s.start + std::ssize(s.ids);
  for (int64_t p = s.start; p < end; ++p) {
    read_window(slot.encoder, std::max(s.window_floor, p - options_.window + 1), p, slot, kEncoder,
                "encoder window");
    push_row(slot.encoder, p, slot.rows[static_cast<size_t>(p)]);
    push_row(slot.held, p, slot.rows[static_cast<size_t>(p)]);
  }
  slot.position = end;
  add_prompt_logprobs(s, slot, result);
  if (s.sample) sample(s, slot, result);
}

void FakeExecutor::run_pages(const Segment& s, const Slot& slot) {
  for (int64_t p = 0; p < s.start + std::ssize(s.ids); ++p) {
    uint64_t& content = page(s.blocks[static_cast<size_t>(p / options_.block_tokens)], p);
    const uint64_t right = fake_page(slot.rows[static_cast<size_t>(p)]);
    if (p >= s.start && p >= s.pages_from) content = right;
    if (content != right) {
      fail("slot " + std::to_string(s.slot) + " reads a wrong page row " + std::to_string(p));
    }
  }
}

void FakeExecutor::run_decoder(const Segment& s, Slot& slot) {
  const int64_t end = s.start + std::ssize(s.ids), floor = s.decoder_floor;
  if (end < s.decoder_start) return;
  const bool has_prompt_end = s.start < s.decoder_start;
  const int64_t first = has_prompt_end ? floor : std::max(s.start, floor);
  read_window(slot.held, first, s.start, slot, kEncoder, "held rows");
  for (int64_t p = first; p < end; ++p) {
    read_window(slot.decoder, std::max(floor, p - options_.window + 1), p, slot, floor,
                "decoder window");
    push_row(slot.decoder, p, fake_decoder_row(slot.rows[static_cast<size_t>(p)], floor));
  }
}

void FakeExecutor::add_prompt_logprobs(const Segment& s, const Slot& slot, StepResult& result) {
  if (s.prompt_logprobs < 0) return;
  if (s.decoder_start != 0) fail("prompt log-probabilities without exact mode");
  const int64_t end = s.start + std::ssize(s.ids);
  for (int64_t p = s.start; p < end; ++p) {
    const int32_t next = p + 1 < end ? s.ids[static_cast<size_t>(p + 1 - s.start)] : s.next_id;
    if (next < 0) continue;
    if (next != slot.tokens[static_cast<size_t>(p + 1)]) fail(text("a wrong next id after ", p));
    const uint64_t row = fake_decoder_row(slot.rows[static_cast<size_t>(p)], 0);
    result.prompt_logprobs.push_back(
        {s.slot, {.position = p + 1, .token = {next, fake_logprob(row, next)}}});
  }
}

void FakeExecutor::sample(const Segment& s, Slot& slot, StepResult& result) {
  const int64_t end = s.start + std::ssize(s.ids);
  if (end < s.decoder_start) fail("sampled without a decoder row");
  const uint64_t row = fake_decoder_row(slot.rows[static_cast<size_t>(end - 1)], s.decoder_floor);
  const bool is_early = end - slot.num_prompt < slot.min_tokens;
  int32_t token = fake_token(row, slot.seed, end, options_.eos_every,
                             is_early ? slot.stop_ids : std::vector<int32_t>());
  if (s.forced_token >= 0) token = s.forced_token;
  result.tokens.push_back({.slot = s.slot, .token = token, .logprob = fake_logprob(row, token)});
  if (happens(options_.token_error_rate)) {
    ++num_errors_;
    result.tokens.back().error = Status(StatusCode::kInternal, "injected NaN");
    slot.is_poisoned = true;
    // What is not a number may have been stored as well.
    spoil_pages(s);
  }
  push_token(slot, token);
  const int64_t num_output = std::ssize(slot.tokens) - slot.num_prompt;
  const bool is_stop =
      std::find(slot.stop_ids.begin(), slot.stop_ids.end(), token) != slot.stop_ids.end();
  slot.is_over = num_output >= slot.max_tokens || (is_stop && num_output > slot.min_tokens);
}

void FakeExecutor::spoil_pages(const Segment& s) {
  for (int64_t p = std::max(s.start, s.pages_from); p < s.start + std::ssize(s.ids); ++p) {
    page(s.blocks[static_cast<size_t>(p / options_.block_tokens)], p) = mix(0xbad, rng_());
  }
}

// A sequence that failed: its rows are garbage, and nobody may find them again.
void FakeExecutor::run_poisoned(const Segment& s, StepResult& result) {
  spoil_pages(s);
  if (s.sample) result.tokens.push_back({.slot = s.slot, .token = 0});
}

void FakeExecutor::save(const Step& plan, StepResult& result) {
  for (const StateSave& s : plan.saves) {
    const Slot& slot = slots_[static_cast<size_t>(s.slot)];
    if (!seen_images_.insert(s.image).second) fail(text("an image number came twice: ", s.image));
    if (slot.is_poisoned) {  // it saves garbage, which nobody may load
      images_[s.image].is_garbage = true;
      result.saved.push_back({s.image, options_.image_bytes});
      continue;
    }
    if (!slot.is_started || slot.position == 0) {
      fail(text("saved an empty slot: ", s.slot));
      continue;
    }
    Image& image = images_[s.image];
    image.position = slot.position;
    image.row = slot.rows[static_cast<size_t>(slot.position - 1)];
    image.encoder = slot.encoder;
    image.held = slot.held;
    if (s.decoder_windows) image.decoder = slot.decoder;
    for (int64_t p = slot.position / options_.block_tokens * options_.block_tokens;
         p < slot.position; ++p) {
      image.tail.push_back(page(slot.blocks[static_cast<size_t>(p / options_.block_tokens)], p));
      if (image.tail.back() != fake_page(slot.rows[static_cast<size_t>(p)])) {
        fail(text("a block was given away before an image was made of it, row ", p));
      }
    }
    const int64_t bytes = options_.image_bytes * (s.decoder_windows ? 2 : 1);
    result.saved.push_back({s.image, bytes + std::ssize(image.tail)});
  }
}

}  // namespace fathom::harness
