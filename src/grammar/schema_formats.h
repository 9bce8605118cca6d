// Patterns for the formats of strings.  Private to schema*.cc.
#pragma once

#include <string_view>

namespace fathom::grammar {

// A regular expression all of whose matches are of the format; empty: not a format that we know.
// Narrower than the formats' definitions where those go far (years 1000 to 2999, no leap days,
// ASCII).
std::string_view format_pattern(std::string_view format);

// For messages: "date, date-time, ...".
std::string_view format_names();

}  // namespace fathom::grammar
