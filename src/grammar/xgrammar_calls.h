// The border to the xgrammar library: it throws and logs, we do neither.
//
// Private to this folder.  Thread: any.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "fathom/status.h"

namespace fathom::grammar {

// Called by the log function of the library.
void note_warning(const std::string& message);

// Runs `call`; what it throws, and what it warns of (for the library goes on and ignores part of
// the request), becomes a kInvalidArgument error "WHAT: message".
Status guarded(std::string_view what, const std::function<void()>& call);

}  // namespace fathom::grammar
