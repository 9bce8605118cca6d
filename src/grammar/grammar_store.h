// Compiled grammars by constraint: each is compiled once, kept while in use, and then as long as
// there is room.
//
// Thread: any.  acquire() compiles on the caller's thread, beside a few others
// (GrammarStoreOptions); callers with the same constraint wait for one compile.  No callback runs
// under a lock but `tokens`.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "fathom/constraint.h"
#include "fathom/status.h"
#include "grammar/compiled_grammar.h"
#include "grammar/vocabulary.h"
#include "grammar/warm_up.h"

namespace fathom::grammar {

using GrammarId = int64_t;  // never 0, never used twice; core/grammar_handle.h has the same

struct StoredGrammar {
  GrammarId id = 0;
  std::shared_ptr<const CompiledGrammar> grammar;
};

struct GrammarStoreStats {
  int64_t hits = 0, misses = 0, refused = 0;
  int64_t kept = 0, kept_bytes = 0;
  double compile_s = 0;
};

struct GrammarStoreOptions {
  int64_t max_bytes = int64_t{256} << 20;  // of grammars that nobody uses
  int64_t max_refused = 32;                // remembered errors
  int32_t max_compiles = 3;                // at once: a slow one holds up nobody
};

class GrammarStore {
 public:
  // The vocabulary is made at the first acquire.  `tokens` as Vocabulary::create.
  using Tokens = std::function<std::vector<std::string>()>;
  GrammarStore(Tokens tokens, int32_t vocab_size, int32_t end_token,
               const GrammarStoreOptions& options = {});
  ~GrammarStore();

  // Errors as CompiledGrammar::compile.  The grammar can be found by its id as long as the value
  // (or the cache) holds it.
  Result<std::shared_ptr<const StoredGrammar>> acquire(const Constraint& constraint);
  // nullptr: nobody holds it any more.
  std::shared_ptr<const StoredGrammar> find(GrammarId id) const;

  // Masks of new grammars are worked out behind their compile (warm_up.h); returns when that is
  // over, for measurements.
  void wait_for_masks();

  GrammarStoreStats stats() const;

 private:
  struct Entry;
  Result<std::shared_ptr<const StoredGrammar>> compile(const Constraint& constraint, GrammarId id);
  Result<std::unique_ptr<Compilers>> take_compilers();
  void give_back(std::unique_ptr<Compilers> compilers);
  void trim();  // under mutex_

  const Tokens tokens_;
  const int32_t vocab_size_, end_token_;
  const GrammarStoreOptions options_;

  std::mutex compile_mutex_;  // guards what follows
  std::condition_variable idle_changed_;
  std::shared_ptr<const Vocabulary> vocabulary_;  // from the first compile on
  std::vector<std::unique_ptr<Compilers>> idle_;  // the one used last at the end
  int32_t num_compilers_ = 0;                     // idle or not, max_compiles at most

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable compiled_;
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_;  // by key
  std::list<std::string> order_;                                     // keys, last used first
  std::unordered_map<GrammarId, std::weak_ptr<const StoredGrammar>> by_id_;
  GrammarStoreStats stats_;
  GrammarId next_id_ = 1;

  WarmUp warm_up_;  // last: its thread ends first
};

}  // namespace fathom::grammar
