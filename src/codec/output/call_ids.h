// Ids of tool calls: "call_00_" + 20 letters or digits + 4 digits; "call_00_ET_..." says that no
// reasoning came before the call, so that a later request may leave the reasoning out (recipe.md
// 2.5, 4.4).
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace fathom::codec {

class CallIds {
 public:
  // Each call gives 64 random bits.  Servers take them from the operating system: an id must not
  // be the same in two answers of a conversation.
  using Random = std::function<uint64_t()>;
  explicit CallIds(Random random) : random_(std::move(random)) {}
  // The same ids for the same seed.
  static CallIds from_seed(uint64_t seed);

  // `index`: number of the call in the answer, from 0.
  std::string next(size_t index, bool empty_thinking);

 private:
  Random random_;
};

}  // namespace fathom::codec
