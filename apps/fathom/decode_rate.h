// How fast answers were written, as it is told when they are done.
#pragma once

#include <cstdint>
#include <string>

namespace fathom::app {

// "<lead>510.2 tokens/s": of `num_tokens`, those behind the first one, which came at `first_ms`,
// the last at `last_ms`. Empty where that is too short a time: with drafts several tokens come in
// one step, and how late a thread woke up for them would make the number.
std::string decode_rate(const char* lead, int64_t num_tokens, double first_ms, double last_ms);

}  // namespace fathom::app
