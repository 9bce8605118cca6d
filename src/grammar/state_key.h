// A name for where a matcher is: two matchers of one grammar with the same key allow the same next
// tokens.
//
// Private to this folder.  Thread: that of the matcher.
#pragma once

#include <cstdint>
#include <vector>

namespace xgrammar {
class GrammarMatcher;
}

namespace fathom::grammar {

// Replaces `key`.  `max_token_bytes`: of the vocabulary.  False: this state has no name (it is too
// large, or counts tokens).
bool state_key(const xgrammar::GrammarMatcher& matcher, int32_t max_token_bytes,
               std::vector<int32_t>* key);

}  // namespace fathom::grammar
