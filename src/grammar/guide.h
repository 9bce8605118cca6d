// Holds one sequence to its constraint: free text first where the constraint begins later, then the
// grammar; and keeps the mask of the next token.
//
// Thread: one at a time (fill on one thread, then accept on another, is fine).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fathom/status.h"
#include "grammar/matcher.h"

namespace fathom::grammar {

class Guide {
 public:
  static Result<std::unique_ptr<Guide>> create(std::shared_ptr<const CompiledGrammar> grammar);

  // Makes mask() be of the next token; cheap if it is already.  An error of this sequence stays
  // until rollback.
  void fill();
  // After fill(): which tokens may come, bit i % 32 of word i / 32 is token i.
  std::span<const uint32_t> mask() const { return mask_; }
  // Of them, no other than these.
  bool allows_only(std::span<const int32_t> tokens) const;
  const Status& status() const { return status_; }

  // Takes the next token.  Error: it may not come here.  After the end nothing happens any more:
  // steps that were in flight may still bring tokens.
  Status accept(int32_t token);
  // Takes back the last `n` accepted tokens (drafts that were not kept).
  void rollback(int32_t n);

  // The constraint is fulfilled and nothing can follow.
  bool ended() const { return matcher_->terminated(); }

 private:
  Guide(std::unique_ptr<Matcher> matcher, int32_t starts_after);

  std::unique_ptr<Matcher> matcher_;
  int32_t starts_after_;
  int32_t num_free_ = 0;  // tokens before the grammar, while is_free_ or when it ended
  bool is_free_;
  bool is_filled_ = false;
  std::vector<uint32_t> mask_;
  Status status_;
};

}  // namespace fathom::grammar
