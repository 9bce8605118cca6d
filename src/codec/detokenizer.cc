#include "codec/detokenizer.h"

#include <algorithm>

#include "codec/unicode_utf8.h"

namespace fathom::codec {
namespace {

// Length of `bytes` without a character at the end that more bytes could still complete.
size_t settled_bytes(std::string_view bytes) {
  for (size_t tail = std::min<size_t>(3, bytes.size()); tail > 0; --tail) {
    const size_t begin = bytes.size() - tail;
    const Utf8Step step = utf8_step(bytes.substr(begin));
    if (step.truncated && static_cast<size_t>(step.length) == tail) return begin;
  }
  return bytes.size();
}

}  // namespace

std::string Detokenizer::push(int32_t id) {
  if (!(skip_special_ && tokenizer_.is_special(id))) held_.append(tokenizer_.token_bytes(id));
  const size_t settled = settled_bytes(held_);
  std::string text;
  append_repaired_utf8(std::string_view(held_).substr(0, settled), &text);
  held_.erase(0, settled);
  return text;
}

std::string Detokenizer::flush() {
  std::string text;
  append_repaired_utf8(held_, &text);
  held_.clear();
  return text;
}

}  // namespace fathom::codec
