#include "grammar/matcher.h"

#include <earley_parser.h>
#include <xgrammar/xgrammar.h>

#include <algorithm>
#include <string>

#include "base/check.h"
#include "grammar/limits.h"
#include "grammar/parser_access.h"
#include "grammar/xgrammar_calls.h"

namespace fathom::grammar {

Status too_ambiguous() {
  return Status(StatusCode::kInvalidArgument,
                "too ambiguous: a text can be read in so many ways that its next token would take "
                "too long; write rules by which each text is read in one way");
}

Matcher::Matcher(std::shared_ptr<const CompiledGrammar> grammar)
    : grammar_(std::move(grammar)), key_(grammar_->vocabulary().max_token_bytes()) {}
Matcher::~Matcher() = default;

Result<std::unique_ptr<Matcher>> Matcher::create(std::shared_ptr<const CompiledGrammar> grammar) {
  std::unique_ptr<Matcher> out(new Matcher(std::move(grammar)));
  FATHOM_TRY(guarded("matcher", [&] {
    out->impl_ = std::make_unique<xgrammar::GrammarMatcher>(out->grammar_->impl());
  }));
  const std::string& begun = out->grammar_->begun();
  if (begun.empty()) return out;
  bool fits = false;
  out->allow_work(kMaxTokenWork);
  FATHOM_TRY(guarded("prefix", [&] { fits = out->impl_->AcceptString(begun); }));
  if (fits) return out;
  if (out->did_all_work()) return too_ambiguous().with_context("grammar");
  constexpr size_t kShown = 100;
  return Status(StatusCode::kInvalidArgument,
                "the answer is to go on from '" + begun.substr(0, kShown) +
                    (begun.size() > kShown ? "...'" : "'") +
                    ", but no answer that the response format allows begins so");
}

void Matcher::allow_work(int64_t most) {
  xgrammar::EarleyParser& parser = xgrammar::parser_of(*impl_);
  parser.work_ = 0;
  parser.max_work_ = most;
}

bool Matcher::did_all_work() const {
  const xgrammar::EarleyParser& parser = xgrammar::parser_of(*impl_);
  return parser.work_ > parser.max_work_;
}

Status Matcher::fill_mask(std::span<uint32_t> mask) {
  const size_t words = grammar_->vocabulary().mask_words();
  FATHOM_CHECK(mask.size() == words) << mask.size() << ' ' << words;
  if (terminated_) {
    std::fill(mask.begin(), mask.end(), 0u);
    return Status();
  }
  const bool has_key = key_.begin(*impl_);
  if (has_key && find_mask(mask)) return Status();
  int64_t shape = static_cast<int64_t>(words);
  DLTensor tensor{.data = mask.data(),
                  .device = {kDLCPU, 0},
                  .ndim = 1,
                  .dtype = {kDLInt, 32, 1},
                  .shape = &shape,
                  .strides = nullptr,
                  .byte_offset = 0};
  if (has_key) key_.watch();
  allow_work(kMaxTokenWork);
  const Status status = guarded("token mask", [&] { impl_->FillNextTokenBitmask(&tensor); });
  if (has_key) key_.end_watch();
  if (status.ok() && did_all_work()) return too_ambiguous().with_context("grammar");
  if (status.ok() && has_key) keep_mask(mask);
  return status;
}

bool Matcher::has_mask() { return terminated_ || (key_.begin(*impl_) && find_mask({})); }

size_t Matcher::state_hash(int more) {
  while (!terminated_ && more-- > 0 && key_.extend()) {
  }
  return key_.hash();
}

// Makes the key as long as is needed to tell what is kept of it.
bool Matcher::find_mask(std::span<uint32_t> mask) {
  beginning_ = MaskCache::kRoot;
  is_key_whole_ = true;
  while (true) {
    const MaskCache::Found found = grammar_->masks().find(beginning_, key_.last_part(), mask);
    if (found.kind != MaskCache::Kind::kBeginning) return found.kind == MaskCache::Kind::kMask;
    is_key_whole_ = key_.extend();
    if (!is_key_whole_) return false;
    beginning_ = found.number;
  }
}

// Of what find_mask() did not find.
void Matcher::keep_mask(std::span<const uint32_t> mask) {
  if (!is_key_whole_) return;
  while (!key_.is_enough()) {
    const auto number = grammar_->masks().insert_beginning(beginning_, key_.last_part());
    if (!number || !key_.extend()) return;
    beginning_ = *number;
  }
  grammar_->masks().insert(beginning_, key_.last_part(), mask);
}

bool Matcher::accept(int32_t token) {
  if (terminated_) return false;
  bool accepted = false;
  // A token that may not come is refused with a warning, which is no fault of ours.
  allow_work(kMaxTokenWork);
  const Status status = guarded("token", [&] { accepted = impl_->AcceptToken(token); });
  took_too_long_ = !accepted && did_all_work();
  if (!status.ok() || !accepted) return false;
  ++num_accepted_;
  terminated_ = token == grammar_->vocabulary().end_token();
  return true;
}

Status Matcher::refusal(int32_t token) const {
  if (took_too_long_) return too_ambiguous().with_context("grammar");
  return Status(StatusCode::kInternal,
                "token " + std::to_string(token) + " may not come here by the request's grammar");
}

void Matcher::rollback(int32_t n) {
  FATHOM_CHECK(n >= 0 && n <= num_accepted_) << n << ' ' << num_accepted_;
  if (n == 0) return;
  const Status status = guarded("rollback", [&] { impl_->Rollback(n); });
  FATHOM_CHECK(status.ok()) << status.message();
  num_accepted_ -= n;
  terminated_ = false;
}

}  // namespace fathom::grammar
