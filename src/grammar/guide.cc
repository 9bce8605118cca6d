#include "grammar/guide.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "base/check.h"

namespace fathom::grammar {

Guide::Guide(std::unique_ptr<Matcher> matcher, int32_t starts_after)
    : matcher_(std::move(matcher)),
      starts_after_(starts_after),
      is_free_(starts_after >= 0),
      mask_(matcher_->grammar().vocabulary().mask_words()) {}

Result<std::unique_ptr<Guide>> Guide::create(std::shared_ptr<const CompiledGrammar> grammar) {
  const int32_t starts_after = grammar->starts_after();
  FATHOM_ASSIGN(std::unique_ptr<Matcher> matcher, Matcher::create(std::move(grammar)));
  return std::unique_ptr<Guide>(new Guide(std::move(matcher), starts_after));
}

void Guide::fill() {
  if (is_filled_) return;
  is_filled_ = true;
  if (!is_free_) {
    status_ = matcher_->fill_mask(mask_);
    return;
  }
  // Anything but the end: an answer that ends here would not fulfil the constraint.
  std::fill(mask_.begin(), mask_.end(), ~0u);
  const auto end = static_cast<uint32_t>(matcher_->grammar().vocabulary().end_token());
  mask_[end / 32] &= ~(1u << (end % 32));
}

bool Guide::allows_only(std::span<const int32_t> tokens) const {
  int64_t num_allowed = 0;
  for (const uint32_t word : mask_) num_allowed += std::popcount(word);
  for (const int32_t token : tokens) {
    const auto at = static_cast<size_t>(token);
    num_allowed -= mask_[at / 32] >> (at % 32) & 1;
  }
  return num_allowed <= 0;
}

Status Guide::accept(int32_t token) {
  is_filled_ = false;
  if (is_free_) {
    ++num_free_;
    is_free_ = token != starts_after_;
    return Status();
  }
  if (ended() || matcher_->accept(token)) return Status();
  return Status(StatusCode::kInternal,
                "token " + std::to_string(token) + " may not come here by the request's grammar");
}

void Guide::rollback(int32_t n) {
  const int32_t of_grammar = std::min(n, matcher_->num_accepted());
  matcher_->rollback(of_grammar);
  FATHOM_CHECK(n - of_grammar <= num_free_) << n;
  if (n > of_grammar) {
    num_free_ -= n - of_grammar;
    is_free_ = true;
  }
  is_filled_ = false;
  status_ = Status();
}

}  // namespace fathom::grammar
