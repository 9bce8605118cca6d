#include "runner/slot_sampler.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace fathom::runner {
namespace {

Status nan_error(int64_t position) {
  return Status(StatusCode::kInternal,
                "the model's output at position " + std::to_string(position) + " is not a number");
}

// Tokens that would end the answer too early; a grammar that can only end may end all the same.
std::span<const int32_t> forbidden_ends(const Slot& slot, int32_t num_drafts, int64_t num_output) {
  if (num_output >= slot.params.min_tokens) return {};
  if (slot.guide != nullptr && slot.guide->allows_only(slot.stop_ids, num_drafts)) return {};
  return slot.stop_ids;
}

// As sampler::raw_logprobs has it.
sampler::Sample drawn_sample(const RowChoice& row, int32_t num_top) {
  sampler::Sample out{.id = row.token, .logprob = 0, .top = {}};
  if (row.logprobs.empty()) return out;
  out.logprob = row.logprobs[0];
  const size_t count = std::min(static_cast<size_t>(std::max(num_top, 0)), row.top.size());
  out.top.reserve(count);
  for (size_t j = 0; j < count && row.top[j] >= 0; ++j) {
    out.top.push_back({row.top[j], row.logprobs[1 + j]});
  }
  return out;
}

// Edits of a step that are uploaded; rows with more are the host's.
constexpr int64_t kEditsMost = int64_t{1} << 18;

}  // namespace

SlotSampler::SlotSampler(int32_t vocab_size, AcceptHook accept_hook)
    : vocab_size_(static_cast<size_t>(vocab_size)),
      sampler_(vocab_size),
      accept_hook_(std::move(accept_hook)) {}

// slot.output has the drafts behind which the token is drawn.
Result<sampler::Sample> SlotSampler::draw(Slot& slot, int64_t position, const RowChoice& row,
                                          int32_t num_drafts, bool with_logprobs) {
  std::span<const uint32_t> mask;
  if (slot.guide != nullptr) {
    FATHOM_TRY(Status(slot.guide->status(num_drafts)));
    mask = slot.guide->mask(num_drafts);
  }
  if (row.token == kernels::kRowIsNan) return nan_error(position - 1);
  if (row.token == kernels::kRowIsEmpty) return sampler::nothing_error();
  if (row.token >= 0) return drawn_sample(row, slot.params.logprobs);
  return sampler_.sample(row.logits, slot.params, slot.seed, position, {slot.prompt, slot.output},
                         mask, forbidden_ends(slot, num_drafts, std::ssize(slot.output)),
                         with_logprobs);
}

bool SlotSampler::add_draw(Slot& slot, int64_t position, int32_t num_drafts, int64_t num_output,
                           bool with_logprobs, model::RowDraws& draws) {
  const auto words = static_cast<size_t>(kernels::mask_words(static_cast<int64_t>(vocab_size_)));
  if (with_logprobs && slot.params.logprobs > kernels::kRowLogprobsTopMost) return false;
  kernels::RowDraw draw = sampler::row_draw(slot.params, slot.seed, position);
  if (sampler::has_edits(slot.params)) {
    const sampler::History history = {slot.prompt, slot.output};
    const auto first = std::ssize(draws.edits);
    if (first + sampler::most_edits(slot.params, history, static_cast<int64_t>(vocab_size_)) >
        kEditsMost) {
      return false;
    }
    sampler_.add_edits(slot.params, history, draws.add_mask(words, draw.edited), draws.edits);
    draw.first_edit = static_cast<int32_t>(first);
    draw.num_edits = static_cast<int32_t>(std::ssize(draws.edits) - first);
  }
  std::span<const uint32_t> allowed;
  if (slot.guide != nullptr) allowed = slot.guide->mask(num_drafts);
  const std::span<const int32_t> forbidden = forbidden_ends(slot, num_drafts, num_output);
  if (sampler::has_mask(slot.params, allowed, forbidden)) {
    sampler::build_mask(slot.params, slot.output, allowed, forbidden,
                        draws.add_mask(words, draw.mask));
  }
  if (with_logprobs && slot.params.logprobs >= 0) {
    draws.with_logprobs.push_back(std::ssize(draws.rows));
    draws.num_top = std::max(draws.num_top, slot.params.logprobs);
  }
  draws.rows.push_back(draw);
  return true;
}

RowUse SlotSampler::use_of(Slot& slot, int64_t position, int32_t num_drafts, int32_t forced,
                           model::RowDraws& draws) {
  if (!slot.error.ok() || slot.is_failed) return RowUse::kNone;
  if (slot.guide != nullptr && num_drafts == 0 && slot.drafts.empty() && slot.guide->ended()) {
    return RowUse::kNone;
  }
  if (slot.guide != nullptr && !slot.guide->status(num_drafts).ok()) return RowUse::kNone;
  if (forced >= 0) return slot.params.logprobs >= 0 ? RowUse::kLogits : RowUse::kNone;
  const auto behind = slot.drafts.begin() + num_drafts;
  slot.output.insert(slot.output.end(), slot.drafts.begin(), behind);
  const bool is_drawn = add_draw(slot, position, num_drafts, std::ssize(slot.output), true, draws);
  slot.output.resize(slot.output.size() - static_cast<size_t>(num_drafts));
  return is_drawn ? RowUse::kDraw : RowUse::kLogits;
}

SampledToken SlotSampler::note_error(Slot& slot, SampledToken out, Status error) {
  out.error = std::move(error);
  slot.is_over = true;
  return out;
}

// Whether token number `index` of the output ends it; a grammar's end is another matter.
bool SlotSampler::ends(const Slot& slot, size_t index, int32_t token) {
  const auto n = static_cast<int64_t>(index);
  if (n + 1 >= slot.max_tokens) return true;
  return n >= slot.params.min_tokens &&
         std::find(slot.stop_ids.begin(), slot.stop_ids.end(), token) != slot.stop_ids.end();
}

void SlotSampler::note_token(Slot& slot, int32_t token) {
  slot.is_over = slot.is_over || ends(slot, slot.output.size(), token);
  slot.last_token = token;
  slot.output.push_back(token);
}

SampledToken SlotSampler::sample(Slot& slot, SlotId id, int64_t position, const RowChoice& row,
                                 int32_t forced) {
  SampledToken out{.slot = id};
  if (slot.guide != nullptr && slot.guide->ended()) {
    // A row of a step that was planned before the end was known; nobody sees it.
    out.token = slot.last_token;
    out.ends = true;
    return out;
  }
  if (slot.error.ok() && slot.guide != nullptr) slot.error = slot.guide->status();
  if (!slot.error.ok()) return note_error(slot, std::move(out), slot.error);
  if (forced >= 0) {
    out.token = forced;
    if (slot.params.logprobs >= 0) {
      sampler::Sample raw = sampler::raw_logprobs(row.logits, out.token, slot.params.logprobs);
      out.logprob = raw.logprob;
      out.top = std::move(raw.top);
      if (std::isnan(out.logprob)) {
        return note_error(slot, std::move(out), nan_error(position - 1));
      }
    }
  } else {
    Result<sampler::Sample> drawn = draw(slot, position, row, 0, true);
    if (!drawn) return note_error(slot, std::move(out), std::move(drawn).error());
    out.token = drawn->id;
    out.logprob = drawn->logprob;
    out.top = std::move(drawn->top);
  }
  if (slot.guide != nullptr) {
    slot.error = slot.guide->accept(out.token);
    out.error = slot.error;
    out.ends = slot.guide->ended();
    slot.is_over = slot.is_over || out.ends || !out.error.ok();
  }
  note_token(slot, out.token);
  return out;
}

int32_t SlotSampler::verify(Slot& slot, SlotId id, int32_t num_drafts,
                            std::span<const RowChoice> rows, std::vector<SampledToken>& tokens) {
  const int32_t set_by_hook = accept_hook_.accept ? accept_hook_.accept(id, num_drafts) : -1;
  // After the last of its drafts a grammar may be at its end; an earlier one cannot be.
  const bool last_draft_ends = slot.guide != nullptr && slot.guide->ended();
  const auto num_all = static_cast<int32_t>(slot.drafts.size());
  int32_t num_accepted = 0;
  bool goes_on = true;
  if (!slot.error.ok()) tokens.push_back(note_error(slot, {.slot = id}, slot.error));
  while (goes_on && !slot.is_over) {
    SampledToken out{.slot = id};
    const int32_t r = num_accepted;
    const int64_t position = ++slot.position;
    Result<sampler::Sample> drawn = draw(slot, position, rows[static_cast<size_t>(r)], r, true);
    if (!drawn) {
      tokens.push_back(note_error(slot, std::move(out), std::move(drawn).error()));
      break;
    }
    out.token = drawn->id;
    out.logprob = drawn->logprob;
    out.top = std::move(drawn->top);
    goes_on = r < num_drafts && out.token == slot.drafts[static_cast<size_t>(r)];
    if (set_by_hook >= 0) goes_on = r < std::min(num_drafts, set_by_hook);
    if (goes_on) {
      out.token = slot.drafts[static_cast<size_t>(r)];
      ++num_accepted;
      out.ends = num_accepted == num_all && last_draft_ends;
    }
    note_token(slot, out.token);
    slot.is_over = slot.is_over || out.ends;
    tokens.push_back(std::move(out));
  }
  slot.end_drafts(num_accepted);
  slot.draft_rows.cut(slot.position);
  if (!goes_on && slot.guide != nullptr && tokens.back().error.ok()) {
    SampledToken& own = tokens.back();  // the target's, behind the accepted ones
    own.error = slot.guide->accept(own.token);
    own.ends = slot.guide->ended();
    slot.is_over = slot.is_over || own.ends || !own.error.ok();
  }
  return num_accepted;
}

int32_t SlotSampler::draft(Slot& slot, const RowChoice& row) {
  const auto n = static_cast<int32_t>(slot.drafts.size());
  if (drafts_end(slot)) return -1;
  if (slot.guide != nullptr) slot.guide->fill();
  const Result<sampler::Sample> drawn = draw(slot, slot.position + 1 + n, row, n, false);
  if (!drawn) return -1;
  if (slot.guide != nullptr && !slot.guide->draft(drawn->id)) return -1;
  return add_draft(slot, drawn->id);
}

bool SlotSampler::draw_draft(Slot& slot, int32_t i, model::RowDraws& draws) {
  if (slot.guide != nullptr) slot.guide->fill();
  const bool has_none = drafts_end(slot) || (slot.guide != nullptr && !slot.guide->status(i).ok());
  const int64_t num_output = std::ssize(slot.output) - std::ssize(slot.drafts) + i;
  if (!has_none) return add_draw(slot, slot.position + 1 + i, i, num_output, false, draws);
  draws.rows.emplace_back();  // draft() will not look at its token
  return true;
}

bool SlotSampler::draws_ahead(const Slot& slot) {
  return slot.guide == nullptr && slot.params.bad_words.empty() &&
         !sampler::edits_depend_on_output(slot.params);
}

// The token before ended the answer, or will if it is right.
bool SlotSampler::drafts_end(const Slot& slot) {
  return !slot.drafts.empty() && ends(slot, slot.output.size() - 1, slot.output.back());
}

int32_t SlotSampler::add_draft(Slot& slot, int32_t token) {
  slot.drafts.push_back(token);
  slot.output.push_back(token);  // until the round ends
  return token;
}

}  // namespace fathom::runner
