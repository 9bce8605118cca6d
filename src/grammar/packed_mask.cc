#include "grammar/packed_mask.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace fathom::grammar {

PackedMask::PackedMask(std::span<const uint32_t> mask) {
  constexpr size_t kFewer = 8;  // else lists take longer to read than the words
  size_t num_allowed = 0;
  for (const uint32_t word : mask) num_allowed += static_cast<size_t>(std::popcount(word));
  form_ = num_allowed <= mask.size() * 16 ? Form::kAllowed : Form::kForbidden;
  size_t next = 0;
  for (size_t i = 0; i < mask.size() && bytes_.size() < mask.size_bytes() / kFewer; ++i) {
    for (uint32_t left = form_ == Form::kAllowed ? mask[i] : ~mask[i]; left != 0;
         left &= left - 1) {
      const size_t id = i * 32 + static_cast<size_t>(std::countr_zero(left));
      put(id - next);
      next = id + 1;
    }
  }
  if (bytes_.empty() ||
      bytes_.size() >= mask.size_bytes() / kFewer) {  // no list looks like no mask
    form_ = Form::kWords;
    bytes_.resize(mask.size_bytes());
    std::memcpy(bytes_.data(), mask.data(), mask.size_bytes());
  }
  bytes_.shrink_to_fit();
}

void PackedMask::put(size_t distance) {
  for (; distance >= 0x80; distance >>= 7) bytes_.push_back(static_cast<uint8_t>(distance | 0x80));
  bytes_.push_back(static_cast<uint8_t>(distance));
}

void PackedMask::unpack(std::span<uint32_t> mask) const {
  if (form_ == Form::kWords) {
    std::memcpy(mask.data(), bytes_.data(), mask.size_bytes());
    return;
  }
  std::fill(mask.begin(), mask.end(), form_ == Form::kAllowed ? 0u : ~0u);
  size_t id = 0;
  for (auto byte = bytes_.begin(); byte != bytes_.end(); ++id) {
    int shift = 0;
    for (; (*byte & 0x80) != 0; ++byte, shift += 7)
      id += static_cast<size_t>(*byte & 0x7F) << shift;
    id += static_cast<size_t>(*byte++) << shift;
    mask[id / 32] ^= 1u << id % 32;
  }
}

}  // namespace fathom::grammar
