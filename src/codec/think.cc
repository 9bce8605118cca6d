#include "codec/think.h"

namespace fathom::codec {

std::string_view think_name(Think think) {
  switch (think) {
    case Think::kOff:
      return "off";
    case Think::kLow:
      return "low";
    case Think::kHigh:
      return "high";
    case Think::kXhigh:
      return "xhigh";
    case Think::kMax:
      return "max";
  }
  return "unknown";
}

std::optional<Think> parse_think(std::string_view name) {
  for (const Think t : {Think::kOff, Think::kLow, Think::kHigh, Think::kXhigh, Think::kMax}) {
    if (name == think_name(t)) return t;
  }
  return std::nullopt;
}

void set_think(Think think, Conversation* conversation) {
  conversation->thinking = think != Think::kOff;
  conversation->effort_level.reset();
  conversation->effort.reset();
  if (think == Think::kLow) conversation->effort = Effort::kLow;
  if (think == Think::kHigh) conversation->effort = Effort::kHigh;
  if (think == Think::kXhigh) conversation->effort = Effort::kXhigh;
  if (think == Think::kMax) conversation->effort = Effort::kMax;
}

Think think_of(const Conversation& conversation) {
  if (!conversation.thinking) return Think::kOff;
  switch (conversation.effort.value_or(Effort::kHigh)) {
    case Effort::kLow:
      return Think::kLow;
    case Effort::kHigh:
      return Think::kHigh;
    case Effort::kXhigh:
      return Think::kXhigh;
    case Effort::kMax:
      break;
  }
  return Think::kMax;
}

}  // namespace fathom::codec
