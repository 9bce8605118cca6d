// Byte-level byte pair encoding (Sennrich et al. 2016, arXiv:1508.07909): a piece starts as its
// bytes; the adjacent pair of lowest rank is merged, the leftmost of equals first, until no pair
// has a rank.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace fathom::codec {

// The merge table.  Thread: any; immutable.
class BpeModel {
 public:
  // One rule; its rank is its place in the list.
  struct Merge {
    int32_t left;
    int32_t right;
    int32_t result;
  };
  struct Found {
    uint32_t rank;  // kNoRank: the pair does not merge
    int32_t result;
  };
  static constexpr uint32_t kNoRank = UINT32_MAX;
  static constexpr int32_t kNoToken = -1;

  // `byte_tokens` is the token of each single byte; those that no UTF-8 text contains may be
  // kNoToken. If a pair is named twice, its last rank counts.  Ids are >= 0.
  BpeModel(const std::array<int32_t, 256>& byte_tokens, std::span<const Merge> merges);

  Found find(int32_t left, int32_t right) const {
    const uint64_t key = pair_key(left, right);
    for (size_t at = slot_of(key);; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.key == key) return slot.found;
      if (slot.found.rank == kNoRank) return slot.found;
    }
  }
  int32_t byte_token(char byte) const { return byte_tokens_[static_cast<unsigned char>(byte)]; }

 private:
  struct Slot {
    uint64_t key = UINT64_MAX;
    Found found{kNoRank, kNoToken};
  };

  static uint64_t pair_key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  size_t slot_of(uint64_t key) const { return (key * 0x9E3779B97F4A7C15u) >> shift_; }

  std::array<int32_t, 256> byte_tokens_;
  // Open addressing, at most half full, so that every probe ends at an empty slot.
  std::vector<Slot> slots_;
  size_t mask_ = 0;
  int shift_ = 0;
};

// Encodes the pieces of one text.  Words repeat within a text, so short pieces are remembered in a
// direct-mapped table sized by the text.  Thread: one; borrows the model.
class BpeEncoder {
 public:
  BpeEncoder(const BpeModel& model, size_t text_bytes);

  // Appends the tokens of `piece` (UTF-8, shorter than 4 GiB) to `out`.  O(n log n) for long
  // pieces.
  void encode(std::string_view piece, std::vector<int32_t>* out);

 private:
  // One cache line: the bytes of a piece, zero padded, and its tokens.
  struct Word {
    std::array<uint64_t, 3> bytes;
    uint16_t num_bytes;  // 0: empty
    uint16_t num_tokens;
    std::array<int32_t, 9> tokens;
  };
  static_assert(sizeof(Word) == 64);

  static std::array<uint64_t, 3> load_bytes(std::string_view piece);
  void merge_short(std::string_view piece, std::vector<int32_t>* out) const;
  void merge_long(std::string_view piece, std::vector<int32_t>* out);

  // A token of a long piece, in a list linked by position.
  struct Symbol {
    int32_t token;  // kNoToken: merged into an earlier one
    uint32_t previous;
    uint32_t next;
  };
  // Rank << 32 | position of the left token: the lowest is merged first.
  using Candidate = uint64_t;
  void push_candidate(uint32_t at);

  const BpeModel& model_;
  std::vector<Word> words_;  // a power of two, or none for short texts
  int shift_ = 0;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

}  // namespace fathom::codec
