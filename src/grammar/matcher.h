// Where one sequence is in its grammar.
//
// Thread: one at a time.  Nothing is shared with other matchers but the compiled grammar.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fathom/status.h"
#include "grammar/compiled_grammar.h"
#include "grammar/state_key.h"

namespace xgrammar {
class GrammarMatcher;
}

namespace fathom::grammar {

// For grammars whose texts take too long to read.
Status too_ambiguous();

class Matcher {
 public:
  // Behind the grammar's begun().  Error (kInvalidArgument): no text of the grammar begins so.
  static Result<std::unique_ptr<Matcher>> create(std::shared_ptr<const CompiledGrammar> grammar);
  ~Matcher();

  // Sets the bits of the tokens that may come next, all of mask_words() words; the end token's
  // where the text may end.  None once terminated().  Masks of states that some matcher of this
  // grammar was in are copied from the grammar's cache.  Error (kInvalidArgument): the grammar is
  // so ambiguous that this would take too long.
  Status fill_mask(std::span<uint32_t> mask);
  // fill_mask() would copy: the mask of this state is there.
  bool has_mask();
  // Tells this state from others, if has_mask() was true and nothing happened since: those with the
  // same mask differ where it matters later which rules wait, of which `more` are counted than the
  // mask depends on.
  size_t state_hash(int more);
  // Takes the next token; false: it may not come here, or to tell would take too long, and nothing
  // changes.
  bool accept(int32_t token);
  // Of the accept() before, which was refused: why.
  Status refusal(int32_t token) const;
  // Takes back the last `n` accepted tokens, 0 <= n <= num_accepted().
  void rollback(int32_t n);

  // The end token was accepted.
  bool terminated() const { return terminated_; }
  int32_t num_accepted() const { return num_accepted_; }
  const CompiledGrammar& grammar() const { return *grammar_; }

 private:
  explicit Matcher(std::shared_ptr<const CompiledGrammar> grammar);
  // The next call of the library stops when it has done so much work (limits.h).
  void allow_work(int64_t most);
  bool did_all_work() const;
  bool find_mask(std::span<uint32_t> mask);
  void keep_mask(std::span<const uint32_t> mask);

  std::shared_ptr<const CompiledGrammar> grammar_;
  std::unique_ptr<xgrammar::GrammarMatcher> impl_;
  StateKey key_;              // scratch of fill_mask and has_mask
  uint64_t beginning_ = 0;    // what is in front of the key's last part
  bool is_key_whole_ = true;  // its last extend() went well
  int32_t num_accepted_ = 0;
  bool terminated_ = false;
  bool took_too_long_ = false;  // accept() before
};

}  // namespace fathom::grammar
