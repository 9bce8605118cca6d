// Sets of code points for regex.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/regex.h"

namespace fathom::grammar {

using CodeSet = std::vector<CodeRange>;

inline constexpr uint32_t kLastCode = 0x10ffff;

CodeSet sorted(CodeSet set);
// All code points but those and the surrogates.
CodeSet complement(const CodeSet& set);
CodeSet intersection(const CodeSet& a, const CodeSet& b);

CodeSet digits();        // 0-9
CodeSet word();          // A-Z a-z 0-9 _
CodeSet ascii_spaces();  // \t-\r and space
CodeSet all_spaces();    // what any dialect counts as white space
CodeSet line_ends();
CodeSet ascii();
// What a text of this use can hold.
CodeSet allowed(RegexUse use);

}  // namespace fathom::grammar
