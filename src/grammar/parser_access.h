// What cmake/xgrammar.cmake opens of the library: the parser inside a matcher, compile_work_left().
//
// Private to this folder.
#pragma once

#include <earley_parser.h>
#include <xgrammar/xgrammar.h>

namespace xgrammar {

EarleyParser& parser_of(GrammarMatcher& matcher);

}  // namespace xgrammar
