#include "codec/stop_strings.h"

#include <algorithm>
#include <utility>

#include "codec/unicode_utf8.h"

namespace fathom::codec {
namespace {

Status check(std::span<const std::string> stop_strings) {
  const auto wrong = [](std::string message) {
    return Status(StatusCode::kInvalidArgument, std::move(message));
  };
  if (stop_strings.size() > kMaxStopStrings) {
    return wrong("there are " + std::to_string(stop_strings.size()) +
                 " stop strings; allowed: at most " + std::to_string(kMaxStopStrings));
  }
  for (size_t i = 0; i < stop_strings.size(); ++i) {
    const std::string& text = stop_strings[i];
    const std::string name = "stop string " + std::to_string(i);
    if (text.empty()) return wrong(name + " is empty; it would stop every answer at once");
    if (text.size() > kMaxStopStringBytes) {
      return wrong(name + " has " + std::to_string(text.size()) + " bytes; allowed: at most " +
                   std::to_string(kMaxStopStringBytes));
    }
    // Half a character could make us hand out the other half.
    if (valid_utf8_prefix(text) != text.size()) return wrong(name + " is not valid UTF-8");
  }
  return {};
}

}  // namespace

Result<StopStringFinder> StopStringFinder::create(std::span<const std::string> stop_strings) {
  FATHOM_TRY(check(stop_strings));
  std::vector<Pattern> patterns;
  for (const std::string& text : stop_strings) {
    // The automaton runs over the pattern itself to learn where to fall back to.
    Pattern pattern{text, std::vector<size_t>(text.size(), 0), 0};
    for (size_t i = 1; i < text.size(); ++i) {
      advance(pattern, text[i]);
      pattern.fallback[i] = pattern.length;
    }
    pattern.length = 0;
    patterns.push_back(std::move(pattern));
  }
  return StopStringFinder(std::move(patterns));
}

void StopStringFinder::advance(Pattern& pattern, char byte) {
  while (pattern.length > 0 && pattern.text[pattern.length] != byte) {
    pattern.length = pattern.fallback[pattern.length - 1];
  }
  if (pattern.text[pattern.length] == byte) ++pattern.length;
}

std::string StopStringFinder::push(std::string_view piece) {
  if (matched_) return "";
  const size_t held_before = held_.size();
  held_ += piece;
  for (size_t i = held_before; i < held_.size(); ++i) {
    for (size_t p = 0; p < patterns_.size(); ++p) {
      Pattern& pattern = patterns_[p];
      advance(pattern, held_[i]);
      if (pattern.length < pattern.text.size()) continue;
      if (!matched_ || pattern.text.size() > patterns_[*matched_].text.size()) matched_ = p;
    }
    if (matched_) {
      held_.resize(i + 1 - patterns_[*matched_].text.size());
      return std::exchange(held_, "");
    }
  }
  size_t keep = 0;
  for (const Pattern& pattern : patterns_) keep = std::max(keep, pattern.length);
  std::string shown = held_.substr(0, held_.size() - keep);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopStringFinder::finish() { return matched_ ? "" : std::exchange(held_, ""); }

}  // namespace fathom::codec
