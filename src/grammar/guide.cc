#include "grammar/guide.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace fathom::grammar {

Guide::Guide(std::unique_ptr<Matcher> matcher, int32_t starts_after)
    : matcher_(std::move(matcher)), starts_after_(starts_after), is_free_(starts_after >= 0) {
  positions_.resize(1);
}

Result<std::unique_ptr<Guide>> Guide::create(std::shared_ptr<const CompiledGrammar> grammar) {
  const int32_t starts_after = grammar->starts_after();
  FATHOM_ASSIGN(std::unique_ptr<Matcher> matcher, Matcher::create(std::move(grammar)));
  return std::unique_ptr<Guide>(new Guide(std::move(matcher), starts_after));
}

const Guide::Position& Guide::at(int32_t i) const {
  FATHOM_CHECK(i >= 0 && i <= num_drafts_) << i << ' ' << num_drafts_;
  return positions_[static_cast<size_t>(i)];
}

void Guide::clear(Position& position) {
  position.is_filled = false;
  position.status = Status();
}

// Positions are filled front to back, so what is missing is behind what is there: the matcher goes
// back to the first gap once, and along the drafts again.
void Guide::fill() {
  const auto end = positions_.begin() + num_drafts_ + 1;
  const auto gap =
      std::find_if(positions_.begin(), end, [](const Position& p) { return !p.is_filled; });
  if (gap == end) return;
  const auto first = static_cast<int32_t>(gap - positions_.begin());
  retreat(num_drafts_ - first);
  for (int32_t i = first;; ++i) {
    Position& position = positions_[static_cast<size_t>(i)];
    if (!position.is_filled) fill_here(position);
    if (i == num_drafts_) return;
    const bool fits = advance(drafts_[static_cast<size_t>(i)]);
    FATHOM_CHECK(fits) << "a draft that fitted fits no more";
  }
}

void Guide::fill_here(Position& position) {
  position.is_filled = true;
  position.mask.resize(matcher_->grammar().vocabulary().mask_words());
  if (!is_free_) {
    position.status = matcher_->fill_mask(position.mask);
    return;
  }
  // Anything but the end: an answer that ends here would not fulfil the constraint.
  std::fill(position.mask.begin(), position.mask.end(), ~0u);
  const auto end = static_cast<uint32_t>(matcher_->grammar().vocabulary().end_token());
  position.mask[end / 32] &= ~(1u << (end % 32));
}

bool Guide::allows_only(std::span<const int32_t> tokens, int32_t i) const {
  const std::vector<uint32_t>& mask = at(i).mask;
  int64_t num_allowed = 0;
  for (const uint32_t word : mask) num_allowed += std::popcount(word);
  for (const int32_t token : tokens) {
    const auto place = static_cast<size_t>(token);
    num_allowed -= mask[place / 32] >> (place % 32) & 1;
  }
  return num_allowed <= 0;
}

bool Guide::advance(int32_t token) {
  if (!is_free_) return matcher_->accept(token);
  ++num_free_;
  is_free_ = token != starts_after_;
  return true;
}

void Guide::retreat(int32_t n) {
  const int32_t of_grammar = std::min(n, matcher_->num_accepted());
  matcher_->rollback(of_grammar);
  FATHOM_CHECK(n - of_grammar <= num_free_) << n;
  if (n == of_grammar) return;
  num_free_ -= n - of_grammar;
  is_free_ = true;
}

Status Guide::accept(int32_t token) {
  FATHOM_CHECK(num_drafts_ == 0) << num_drafts_;
  clear(positions_.front());
  if (ended() || advance(token)) return Status();
  return matcher_->refusal(token);
}

void Guide::rollback(int32_t n) {
  FATHOM_CHECK(num_drafts_ == 0 && n >= 0) << num_drafts_ << ' ' << n;
  if (n == 0) return;
  retreat(n);
  clear(positions_.front());
}

bool Guide::draft(int32_t token) {
  if (is_free_ && token == matcher_->grammar().vocabulary().end_token()) return false;
  if (ended() || !advance(token)) return false;
  ++num_drafts_;
  const auto n = static_cast<size_t>(num_drafts_);
  if (drafts_.size() < n) drafts_.resize(n);
  if (positions_.size() < n + 1) positions_.resize(n + 1);
  drafts_[n - 1] = token;
  clear(positions_[n]);
  return true;
}

void Guide::keep(int32_t n) {
  FATHOM_CHECK(n >= 0 && n <= num_drafts_) << n << ' ' << num_drafts_;
  retreat(num_drafts_ - n);
  num_drafts_ = 0;
  // What was worked out behind the last right draft is the mask of the next token.
  if (n > 0) std::swap(positions_.front(), positions_[static_cast<size_t>(n)]);
}

}  // namespace fathom::grammar
