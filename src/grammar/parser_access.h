// What cmake/xgrammar.cmake adds to the library: the way to the parser inside a matcher, whose
// members it opens (earley_parser.h), and a bound for compiles.
//
// Private to this folder.
#pragma once

#include <cstdint>

namespace xgrammar {

class EarleyParser;
class GrammarMatcher;

EarleyParser& parser_of(GrammarMatcher& matcher);

// Work that the compiles of this thread may still do, < 0: one did more and threw; and what they
// may do for one state.
int64_t& compile_work_left();
int64_t& state_work_most();

}  // namespace xgrammar
