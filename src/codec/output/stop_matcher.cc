#include "codec/output/stop_matcher.h"

#include <algorithm>

namespace fathom::codec {

StopMatcher::StopMatcher(const std::vector<std::string>& sequences) {
  for (const std::string& text : sequences) {
    if (text.empty()) continue;
    Pattern pattern{text, std::vector<size_t>(text.size(), 0)};
    for (size_t i = 1, k = 0; i < text.size(); ++i) {
      while (k > 0 && text[i] != text[k]) k = pattern.fallback[k - 1];
      if (text[i] == text[k]) ++k;
      pattern.fallback[i] = k;
    }
    begins_[static_cast<unsigned char>(text[0])] = true;
    patterns_.push_back(std::move(pattern));
  }
}

bool StopMatcher::contains(std::string_view sequence) const {
  return std::any_of(patterns_.begin(), patterns_.end(),
                     [sequence](const Pattern& p) { return p.text == sequence; });
}

void StopMatcher::reset() {
  for (Pattern& pattern : patterns_) pattern.length = 0;
  held_ = 0;
}

const std::string* StopMatcher::advance(char byte) {
  if (held_ == 0 && !begins_[static_cast<unsigned char>(byte)]) return nullptr;
  held_ = 0;
  const std::string* matched = nullptr;
  for (Pattern& pattern : patterns_) {
    size_t& length = pattern.length;
    while (length > 0 && pattern.text[length] != byte) length = pattern.fallback[length - 1];
    if (pattern.text[length] == byte) ++length;
    if (length == pattern.text.size()) {
      if (matched == nullptr) matched = &pattern.text;
      length = pattern.fallback[length - 1];
    }
    held_ = std::max(held_, length);
  }
  return matched;
}

}  // namespace fathom::codec
