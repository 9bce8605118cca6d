// A constraint, ready for matching: immutable (but for masks that it remembers), shared by all
// sequences that have it.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fathom/constraint.h"
#include "fathom/status.h"
#include "grammar/mask_cache.h"
#include "grammar/vocabulary.h"

namespace xgrammar {
class CompiledGrammar;
}  // namespace xgrammar

namespace fathom::grammar {

// White space between the parts of JSON: at most so many characters in a row.  Without a bound a
// model may write line breaks for ever.
inline constexpr int kMaxWhitespace = 16;

// Our own rules, without compiling: bounds, keywords, syntax as far as they tell.  Fast (100 ms at
// most for anything).  Errors (kInvalidArgument) say what and where.
Status check_constraint(const Constraint& constraint);

// The library's compilers, of one vocabulary.
struct Compilers;

class CompiledGrammar {
 public:
  // check_constraint, then the compile: about 50 ms for a small schema, seconds at the limits.
  // Errors also: the grammar can never end, or no token of the vocabulary can begin it. `compiler`
  // is of the same vocabulary; one call at a time.
  static Result<std::shared_ptr<const CompiledGrammar>> compile(
      const Constraint& constraint, std::shared_ptr<const Vocabulary> vocabulary,
      Compilers& compilers);
  // `whole`, for answers whose beginning `begun` is there already.  Error: `whole` has no text that
  // begins so.
  static Result<std::shared_ptr<const CompiledGrammar>> continue_from(const CompiledGrammar& whole,
                                                                      std::string begun);
  ~CompiledGrammar();

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  int32_t starts_after() const { return starts_after_; }
  const std::string& begun() const { return begun_; }
  int64_t memory_bytes() const { return memory_bytes_ + masks_->bytes(); }

  // For this folder.
  const xgrammar::CompiledGrammar& impl() const { return *impl_; }
  MaskCache& masks() const { return *masks_; }

 private:
  CompiledGrammar();

  std::shared_ptr<const Vocabulary> vocabulary_;
  std::unique_ptr<xgrammar::CompiledGrammar> impl_;
  int32_t starts_after_ = -1;
  int64_t memory_bytes_ = 0;
  std::string begun_;
  std::shared_ptr<MaskCache> masks_;  // has a lock of its own; shared by those that continue this
};

}  // namespace fathom::grammar
