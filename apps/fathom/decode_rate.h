// How fast answers were written, as it is told when they are done.
#pragma once

#include <cstdint>
#include <string>

namespace fathom::app {

// "<lead>510.2 tokens/s": of `num_behind`, the tokens behind the first one of each answer, which
// came at `first_ms`; the last at `last_ms`. Empty where that is too short a time: with drafts
// several tokens come in one step, and how late a thread woke up for them would make the number.
std::string decode_rate(const char* lead, int64_t num_behind, double first_ms, double last_ms);

}  // namespace fathom::app
