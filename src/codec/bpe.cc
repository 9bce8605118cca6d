#include "codec/bpe.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

namespace fathom::codec {
namespace {

constexpr size_t kWordBytesMax = 24;
// Up to here the quadratic scan, whose arrays sit in registers and L1, beats the heap.
constexpr size_t kShortPieceMax = 64;
// 1 MB: what stays in a core's L2 beside the merge table's hot part.
constexpr size_t kWordsMax = size_t{1} << 14;
constexpr size_t kCachedTextMin = 512;
constexpr uint32_t kEnd = UINT32_MAX;

uint64_t load_u64(const char* p) {
  uint64_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

uint32_t load_u32(const char* p) {
  uint32_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

}  // namespace

BpeModel::BpeModel(const std::array<int32_t, 256>& byte_tokens, std::span<const Merge> merges)
    : byte_tokens_(byte_tokens) {
  const size_t size = std::bit_ceil(std::max<size_t>(2 * merges.size(), 2));
  slots_.resize(size);
  mask_ = size - 1;
  shift_ = 64 - std::countr_zero(size);
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const uint64_t key = pair_key(merges[rank].left, merges[rank].right);
    size_t at = slot_of(key);
    while (slots_[at].key != key && slots_[at].found.rank != kNoRank) at = (at + 1) & mask_;
    slots_[at] = {key, {static_cast<uint32_t>(rank), merges[rank].result}};
  }
}

BpeEncoder::BpeEncoder(const BpeModel& model, size_t text_bytes) : model_(model) {
  if (text_bytes < kCachedTextMin) return;
  const size_t size = std::min(std::bit_ceil(text_bytes / 16), kWordsMax);
  words_.resize(size);
  shift_ = 64 - std::countr_zero(size);
}

// Given the length, the bytes can be told from the words, so equal words mean equal pieces.
std::array<uint64_t, 3> BpeEncoder::load_bytes(std::string_view piece) {
  const char* p = piece.data();
  const size_t n = piece.size();
  if (n > 16) return {load_u64(p), load_u64(p + 8), load_u64(p + n - 8)};
  if (n >= 8) return {load_u64(p), load_u64(p + n - 8), 0};
  if (n >= 4) return {load_u32(p) | static_cast<uint64_t>(load_u32(p + n - 4)) << 32, 0, 0};
  const auto byte = [p](size_t i) {
    return static_cast<uint64_t>(static_cast<unsigned char>(p[i]));
  };
  return {byte(0) | byte(n / 2) << 8 | byte(n - 1) << 16, 0, 0};
}

void BpeEncoder::encode(std::string_view piece, std::vector<int32_t>* out) {
  if (piece.size() == 1) return out->push_back(model_.byte_token(piece[0]));
  if (piece.size() > kShortPieceMax) return merge_long(piece, out);
  if (piece.size() > kWordBytesMax || words_.empty()) return merge_short(piece, out);

  const std::array<uint64_t, 3> bytes = load_bytes(piece);
  const uint64_t mixed = (bytes[0] ^ std::rotl(bytes[1], 23) ^ std::rotl(bytes[2], 47) ^
                          static_cast<uint64_t>(piece.size()) << 56) *
                         0x9E3779B97F4A7C15u;
  // The high half once more: a product's low bits never see the high bits of its factor.
  Word& word = words_[((mixed ^ mixed >> 32) * 0x9E3779B97F4A7C15u) >> shift_];
  if (word.num_bytes == piece.size() && word.bytes == bytes) {
    out->insert(out->end(), word.tokens.begin(), word.tokens.begin() + word.num_tokens);
    return;
  }
  const size_t before = out->size();
  merge_short(piece, out);
  const size_t num_tokens = out->size() - before;
  if (num_tokens > word.tokens.size()) return;
  word.bytes = bytes;
  word.num_bytes = static_cast<uint16_t>(piece.size());
  word.num_tokens = static_cast<uint16_t>(num_tokens);
  std::copy(out->begin() + static_cast<ptrdiff_t>(before), out->end(), word.tokens.begin());
}

void BpeEncoder::merge_short(std::string_view piece, std::vector<int32_t>* out) const {
  std::array<int32_t, kShortPieceMax> tokens;
  std::array<BpeModel::Found, kShortPieceMax> pairs;  // of tokens[i] and tokens[i + 1]
  size_t count = piece.size();
  for (size_t i = 0; i < count; ++i) tokens[i] = model_.byte_token(piece[i]);
  for (size_t i = 0; i + 1 < count; ++i) pairs[i] = model_.find(tokens[i], tokens[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == BpeModel::kNoRank) break;
    tokens[best] = pairs[best].result;
    --count;
    for (size_t i = best + 1; i < count; ++i) tokens[i] = tokens[i + 1];
    for (size_t i = best + 1; i + 1 < count; ++i) pairs[i] = pairs[i + 1];
    if (best > 0) pairs[best - 1] = model_.find(tokens[best - 1], tokens[best]);
    if (best + 1 < count) pairs[best] = model_.find(tokens[best], tokens[best + 1]);
  }
  out->insert(out->end(), tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(count));
}

void BpeEncoder::push_candidate(uint32_t at) {
  const uint32_t next = symbols_[at].next;
  if (next == kEnd) return;
  const BpeModel::Found found = model_.find(symbols_[at].token, symbols_[next].token);
  if (found.rank != BpeModel::kNoRank) heap_.push_back(uint64_t{found.rank} << 32 | at);
}

void BpeEncoder::merge_long(std::string_view piece, std::vector<int32_t>* out) {
  const auto count = static_cast<uint32_t>(piece.size());
  symbols_.resize(count);
  heap_.clear();
  for (uint32_t i = 0; i < count; ++i) {
    symbols_[i] = {model_.byte_token(piece[i]), i == 0 ? kEnd : i - 1,
                   i + 1 < count ? i + 1 : kEnd};
  }
  for (uint32_t i = 0; i < count; ++i) push_candidate(i);
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());

  const auto push = [this](uint32_t at) {
    const size_t before = heap_.size();
    push_candidate(at);
    if (heap_.size() > before) std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  };
  while (!heap_.empty()) {
    const auto rank = static_cast<uint32_t>(heap_.front() >> 32);
    const auto at = static_cast<uint32_t>(heap_.front());
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    Symbol& left = symbols_[at];
    if (left.token == BpeModel::kNoToken || left.next == kEnd) continue;
    Symbol& right = symbols_[left.next];
    // A candidate of before one of its two tokens changed has another rank now.
    const BpeModel::Found found = model_.find(left.token, right.token);
    if (found.rank != rank) continue;
    left.token = found.result;
    left.next = right.next;
    right.token = BpeModel::kNoToken;
    if (left.next != kEnd) symbols_[left.next].previous = at;
    push(at);
    if (left.previous != kEnd) push(left.previous);
  }
  for (uint32_t i = 0; i != kEnd; i = symbols_[i].next) out->push_back(symbols_[i].token);
}

}  // namespace fathom::codec
