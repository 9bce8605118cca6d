// Goes by the states of a grammar, each once, and has their masks worked out.
//
// The states behind whole tokens are those behind their characters, and with keys that are as short
// as may be (state_key.h) they are few.  From each state characters of ASCII are tried, until a
// dozen in a row leads to what is known, short texts first.  White space may come nearly anywhere,
// in runs, and models write little of it: so a character of it counts as several.
//
// Private to this folder.  Thread: one.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_set>
#include <vector>

#include "grammar/compiled_grammar.h"
#include "grammar/matcher.h"

namespace fathom::grammar {

class StateWalk {
 public:
  // At most `seconds` of this thread's processor time, and until a quarter of the room for masks is
  // full.  `stop` ends it from another thread.
  StateWalk(std::shared_ptr<const CompiledGrammar> grammar, double seconds,
            const std::atomic<bool>& stop);

  void run();

 private:
  using Text = std::vector<int32_t>;  // tokens, mostly of one character
  struct Place {
    Text text;
    bool is_visited = false;
  };

  bool is_over() const;
  bool go_to(const Text& text);
  bool visit();
  bool is_known();
  void go_on(int length);
  size_t try_characters(int length);
  bool find_allowed();
  bool put_off(int32_t token, int length, bool is_visited);

  const std::shared_ptr<const CompiledGrammar> grammar_;
  const double end_s_;
  const std::atomic<bool>& stop_;
  std::unique_ptr<Matcher> matcher_;  // behind text_
  Text text_;
  std::vector<uint32_t> mask_;                // scratch
  std::vector<int32_t> characters_, blanks_;  // that may come next
  std::unordered_set<size_t> visited_;        // hashes of keys
  std::map<int, std::vector<Place>> later_;   // by length
  size_t num_later_ = 0;                      // their tokens
};

}  // namespace fathom::grammar
