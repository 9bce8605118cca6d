// Holds one sequence to its constraint: free text first where the constraint begins later, then the
// grammar; and keeps the masks of the next token and of those behind drafts.
//
// A speculating step works so: draft() takes the proposed tokens one by one, fill() works out the
// masks of all their positions (those that choosing the drafts has filled stay), the target draws
// its tokens under mask(0), mask(1), ..., then keep(n) makes the n right drafts accepted, forgets
// the rest, and accept() takes the target's own token behind them.  Without drafts: fill(), mask(),
// accept().
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

  // Makes mask(0), ..., mask(num_drafts()) be there; cheap for those that are already.  Errors of
  // this sequence, status(i), stay until a token or a rollback takes them away.
  void fill();
  // After fill(): which tokens may come behind the first `i` drafts, bit k % 32 of word k / 32 is
  // token k.  Nothing after the end.  The span holds until that position has other tokens before
  // it.
  std::span<const uint32_t> mask(int32_t i = 0) const { return at(i).mask; }
  // Of them, no other than these.
  bool allows_only(std::span<const int32_t> tokens, int32_t i = 0) const;
  const Status& status(int32_t i = 0) const { return at(i).status; }

  // Takes the next token; there are no drafts.  Error: it may not come here.  After the end nothing
  // happens any more: steps that were in flight may still bring tokens.
  Status accept(int32_t token);
  // Takes back the last `n` accepted tokens (those after the end do not count); there are no
  // drafts.
  void rollback(int32_t n);

  // Takes a draft behind those before.  False: it may not come here (or the end was drafted), and
  // nothing changes; drafts behind it would be in vain.
  bool draft(int32_t token);
  int32_t num_drafts() const { return num_drafts_; }
  // The first `n` drafts become accepted tokens, the others are taken back.
  void keep(int32_t n);

  // The constraint is fulfilled and nothing can follow (drafts count).
  bool ended() const { return matcher_->terminated(); }

 private:
  struct Position {
    std::vector<uint32_t> mask;
    bool is_filled = false;
    Status status;
  };
  Guide(std::unique_ptr<Matcher> matcher, int32_t starts_after);

  const Position& at(int32_t i) const;
  bool advance(int32_t token);
  void retreat(int32_t n);
  void fill_here(Position& position);
  void clear(Position& position);

  std::unique_ptr<Matcher> matcher_;
  int32_t starts_after_;
  int32_t num_free_ = 0;  // tokens before the grammar, the one that starts it among them
  bool is_free_;
  int32_t num_drafts_ = 0;
  std::vector<int32_t> drafts_;      // num_drafts_ of them count
  std::vector<Position> positions_;  // [i]: behind i drafts; grows to the longest chain, then stays
};

}  // namespace fathom::grammar
