#include "kvcache/resume_points.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace fathom::kvcache {
namespace {

// Announces a digest in a tail; no token id is negative.
constexpr int32_t kMediaMark = -1;

bool less(std::span<const int32_t> a, std::span<const int32_t> b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
}

size_t common_length(std::span<const int32_t> a, std::span<const int32_t> b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                             a.begin());
}

// Whether `a` can do all that `b` can.
bool covers(const ResumePoint& a, const ResumePoint& b) {
  return a.has_entrance_rows >= b.has_entrance_rows &&
         a.has_decoder_windows >= b.has_decoder_windows;
}

bool serves(const ResumePoint& point, const ResumePoints::Query& query) {
  if (query.exact) return point.has_decoder_windows;
  const int64_t num_tokens = static_cast<int64_t>(query.ids.size());
  return point.has_entrance_rows || point.position <= num_tokens - query.window;
}

}  // namespace

// Equal tails are told apart by their windows: of two that have the same, one covers the other.
bool ResumePoints::TailLess::operator()(const EntryRef& a, const EntryRef& b) const {
  if (a->tail != b->tail) return less(a->tail, b->tail);
  return a->point.has_decoder_windows < b->point.has_decoder_windows;
}

bool ResumePoints::TailLess::operator()(const EntryRef& a, TailView b) const {
  return less(a->tail, b);
}

bool ResumePoints::TailLess::operator()(TailView a, const EntryRef& b) const {
  return less(a, b->tail);
}

ResumePoints::ResumePoints(int64_t budget_bytes, int32_t block_tokens)
    : budget_bytes_(budget_bytes), block_tokens_(block_tokens) {
  FATHOM_CHECK(budget_bytes >= 0 && block_tokens > 0) << budget_bytes << ' ' << block_tokens;
}

// `start`: position of ids[0].  Takes the media that begin in the ids; `media` is sorted.
void ResumePoints::splice(std::span<const int32_t> ids, int64_t start,
                          std::span<const MediaStart> media, Tail& out) const {
  out.clear();
  auto next =
      std::lower_bound(media.begin(), media.end(), start,
                       [](const MediaStart& m, int64_t position) { return m.position < position; });
  size_t done = 0;
  for (; next != media.end(); ++next) {
    const size_t offset = static_cast<size_t>(next->position - start);
    if (offset >= ids.size()) break;
    out.insert(out.end(), ids.begin() + static_cast<std::ptrdiff_t>(done),
               ids.begin() + static_cast<std::ptrdiff_t>(offset));
    done = offset;
    std::array<int32_t, 8> words;
    static_assert(sizeof words == sizeof next->digest);
    std::memcpy(words.data(), &next->digest, sizeof words);
    out.push_back(kMediaMark);
    out.insert(out.end(), words.begin(), words.end());
  }
  out.insert(out.end(), ids.begin() + static_cast<std::ptrdiff_t>(done), ids.end());
}

ImageId ResumePoints::remove(EntryRef entry) {
  const ImageId image = entry->point.image;
  const auto siblings = by_parent_.find(entry->parent);
  siblings->second.erase(entry);
  if (siblings->second.empty()) by_parent_.erase(siblings);
  bytes_ -= entry->point.bytes;
  by_use_.erase(entry);
  return image;
}

std::vector<ImageId> ResumePoints::add(const BlockKey& parent, std::span<const int32_t> tail,
                                       const ResumePoint& point,
                                       std::span<const MediaStart> media) {
  const int64_t tail_tokens = static_cast<int64_t>(tail.size());
  FATHOM_CHECK(point.position >= 0 && point.bytes >= 0) << point.position << ' ' << point.bytes;
  FATHOM_CHECK(tail_tokens == point.position % block_tokens_)
      << "a tail of " << tail_tokens << " ids ends at " << point.position;
  if (point.position == 0 || point.bytes > budget_bytes_) return {point.image};

  Entry entry{point, parent, {}};
  splice(tail, point.position - tail_tokens, media, entry.tail);
  std::vector<ImageId> dropped;
  if (const auto siblings = by_parent_.find(parent); siblings != by_parent_.end()) {
    const auto [first, last] = siblings->second.equal_range(TailView(entry.tail));
    std::vector<EntryRef> replaced;
    for (auto same = first; same != last; ++same) {
      if (covers(point, (*same)->point)) {
        replaced.push_back(*same);
      } else if (covers((*same)->point, point)) {
        by_use_.splice(by_use_.begin(), by_use_, *same);
        return {point.image};
      }
    }
    for (const EntryRef old : replaced) dropped.push_back(remove(old));
  }
  while (bytes_ > budget_bytes_ - point.bytes) dropped.push_back(remove(std::prev(by_use_.end())));
  by_use_.push_front(std::move(entry));
  by_parent_[parent].insert(by_use_.begin());
  bytes_ += point.bytes;
  return dropped;
}

// The longest tail that begins `tail` and serves.
std::optional<ResumePoints::EntryRef> ResumePoints::best_behind(const Siblings& siblings,
                                                                TailView tail,
                                                                const Query& query) const {
  auto next = siblings.upper_bound(tail);
  while (next != siblings.begin()) {
    const EntryRef entry = *--next;
    const size_t common = common_length(entry->tail, tail);
    tail = tail.first(common);
    if (common == entry->tail.size()) {
      if (serves(entry->point, query)) return entry;
    } else {
      // No tail longer than what this one has in common begins the text: it would lie in between.
      next = siblings.upper_bound(tail);
    }
  }
  return std::nullopt;
}

std::optional<ResumePoint> ResumePoints::best(const Query& query) {
  FATHOM_CHECK(query.window > 0) << query.window;
  const int64_t num_tokens = static_cast<int64_t>(query.ids.size());
  const int64_t num_blocks = static_cast<int64_t>(query.chain.size());
  FATHOM_CHECK(num_blocks * block_tokens_ <= num_tokens)
      << num_blocks << " blocks of a prompt of " << num_tokens;
  const int64_t cached_tokens = std::max(query.cached_tokens, num_blocks * block_tokens_);
  const int64_t position_max = std::min(num_tokens - 1, cached_tokens);
  for (int64_t i = num_blocks; i >= 0 && !by_use_.empty(); --i) {
    const int64_t border = i * block_tokens_;
    if (border > position_max) continue;
    const BlockKey& parent = i == 0 ? query.root : query.chain[static_cast<size_t>(i - 1)];
    const auto siblings = by_parent_.find(parent);
    if (siblings == by_parent_.end()) continue;
    const int64_t tail_tokens = std::min<int64_t>(position_max - border, block_tokens_ - 1);
    splice(query.ids.subspan(static_cast<size_t>(border), static_cast<size_t>(tail_tokens)), border,
           query.media, wanted_);
    if (const auto entry = best_behind(siblings->second, wanted_, query)) {
      by_use_.splice(by_use_.begin(), by_use_, *entry);
      return (*entry)->point;
    }
  }
  return std::nullopt;
}

std::vector<ImageId> ResumePoints::clear() {
  std::vector<ImageId> images;
  for (const Entry& entry : by_use_) images.push_back(entry.point.image);
  by_parent_.clear();
  by_use_.clear();
  bytes_ = 0;
  return images;
}

void ResumePoints::check_integrity() const {
  int64_t bytes = 0;
  for (const Entry& entry : by_use_) {
    const ResumePoint& point = entry.point;
    FATHOM_CHECK(point.position > 0 && point.bytes >= 0) << point.position;
    bytes += point.bytes;
  }
  FATHOM_CHECK(bytes == bytes_ && bytes <= budget_bytes_) << bytes << ' ' << bytes_;
  int64_t num_indexed = 0;
  for (const auto& [parent, siblings] : by_parent_) {
    FATHOM_CHECK(!siblings.empty()) << to_string(parent) << " has no points";
    const Entry* before = nullptr;
    for (const EntryRef entry : siblings) {
      ++num_indexed;
      FATHOM_CHECK(entry->parent == parent) << to_string(parent);
      FATHOM_CHECK(siblings.find(entry) != siblings.end()) << "point " << entry->point.image;
      FATHOM_CHECK(before == nullptr || before->tail != entry->tail ||
                   !(covers(before->point, entry->point) || covers(entry->point, before->point)))
          << "points " << before->point.image << " and " << entry->point.image << " are one";
      before = &*entry;
    }
  }
  FATHOM_CHECK(num_indexed == size()) << num_indexed << ' ' << size();
}

}  // namespace fathom::kvcache
