// Whether a text is a regular expression at all.
//
// Thread: any; a pure function, linear in the length of the pattern.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fathom::codec {

// What is wrong with the pattern, with the byte where; nullopt: it is well formed (groups and
// classes closed, quantifiers with something to repeat).  "... not supported ...": it is, but has
// look-around, back references, flags or very many repeats, which a constraint cannot hold the
// output to.
std::optional<std::string> regex_fault(std::string_view pattern);

}  // namespace fathom::codec
