// The parser behind Regex::parse.  Private to regex*.cc.
#pragma once

#include <string>
#include <string_view>

#include "grammar/regex.h"

namespace fathom::grammar {

// The tree of a pattern, anchors as nodes, without groups.  Errors as Regex::parse.
Result<RegexNode> parse_regex(std::string_view pattern);

}  // namespace fathom::grammar
