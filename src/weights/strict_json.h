// JSON for files that others wrote: stricter than the library's own reader.
//
// A key that occurs twice in one object is an error (readers disagree on which one counts, so a
// hostile file could show two of them different tensors), numbers keep every bit that the text
// gives them, and depth is bounded by the library (32).  Errors carry `where`.
#pragma once

#include <boost/json/value.hpp>
#include <string_view>

#include "fathom/status.h"

namespace fathom::weights {

// Parses the whole of `text`; anything but white space after the value is an error (kDataLoss).
Result<boost::json::value> parse_strict_json(std::string_view text, std::string_view where);

}  // namespace fathom::weights
