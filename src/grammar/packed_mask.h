// A mask in few bytes: most states allow a few hundred tokens or nearly all.
//
// Thread: any; immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fathom::grammar {

class PackedMask {
 public:
  PackedMask() = default;
  explicit PackedMask(std::span<const uint32_t> mask);

  // To as many words as were packed.
  void unpack(std::span<uint32_t> mask) const;
  bool empty() const { return bytes_.empty(); }
  size_t size_bytes() const { return bytes_.size(); }

 private:
  void put(size_t distance);

  enum class Form { kWords, kAllowed, kForbidden };
  Form form_ = Form::kWords;
  // The words, or distances from one id that is allowed or forbidden to the next: seven bits a
  // byte, the lowest first, with the top bit set where more follow.
  std::vector<uint8_t> bytes_;
};

}  // namespace fathom::grammar
