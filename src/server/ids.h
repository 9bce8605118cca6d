// Names of answers and requests: random, so that nobody guesses those of others.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fathom::server {

// From the operating system.
uint64_t random_bits();
// PREFIX and 24 random letters or digits: "chatcmpl-..."
std::string random_id(std::string_view prefix);
// Unix time, seconds.
int64_t unix_seconds();

}  // namespace fathom::server
