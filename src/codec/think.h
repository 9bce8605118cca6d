// The levels of thinking as people name them on a command line.
#pragma once

#include <optional>
#include <string_view>

#include "codec/conversation.h"

namespace fathom::codec {

// Whether the model thinks before it answers, and how hard.
enum class Think { kOff, kLow, kHigh, kXhigh, kMax };
std::string_view think_name(Think think);                 // "off", "low", "high", "xhigh", "max"
std::optional<Think> parse_think(std::string_view name);  // nullopt: not one of these names

// Sets thinking and effort of a conversation; an effort given as a number is forgotten.
void set_think(Think think, Conversation* conversation);
Think think_of(const Conversation& conversation);

}  // namespace fathom::codec
