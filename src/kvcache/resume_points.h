// Where a prompt with cached pages can start computing: STATE images by the tokens before them
// (design rule 4).
//
// A point at position P belongs to the chain of full blocks below P, to the ids from the last block
// border to P, and to the media among both.  Least recently used points go first when the byte
// budget is exceeded.
//
// Thread: engine.  Holds numbers only; the executor holds the bytes.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/block_key.h"
#include "core/step_plan.h"

namespace fathom::kvcache {

struct ResumePoint {
  ImageId image = 0;
  int64_t position = 0;
  int64_t bytes = 0;              // >= 0
  bool has_entrance_rows = true;  // of [position - W, position)
  // Taken in exact mode.  Not the windows of a bounded replay: those depend on where the prompt
  // ended, so they serve only the sequence that they were saved for.
  bool has_decoder_windows = false;
};

class ResumePoints {
 public:
  // budget_bytes >= 0 (0: no points are kept), block_tokens > 0.
  ResumePoints(int64_t budget_bytes, int32_t block_tokens);

  // Adds a point behind the full block with key `parent` (the namespace if there is none) and
  // `tail`: the ids from that block's end to point.position; `media`: those that begin in the tail.
  //
  // Of two points with the same tokens the newer one replaces the older, unless it lacks something
  // that the older has; if each has what the other lacks, both stay.  Returns the images to drop,
  // of replaced points and to stay in the budget.  The new one may be among them: if it is worth
  // less than what is there, larger than the whole budget, or at position 0.  So may one that the
  // plan being made loads from: drop it in a later plan.
  std::vector<ImageId> add(const BlockKey& parent, std::span<const int32_t> tail,
                           const ResumePoint& point, std::span<const MediaStart> media = {});

  struct Query {
    BlockKey root;                    // the namespace
    std::span<const BlockKey> chain;  // keys of the prompt's full blocks that are cached, in order
    std::span<const int32_t> ids;     // the whole prompt
    int64_t window = 0;               // W
    bool exact = false;               // needs decoder windows; else they are refilled
    std::span<const MediaStart> media = {};  // of the whole prompt, by position
    // H, if rows of PAGES are at hand beyond the full blocks: a partial block that was kept, or
    // images that bring the rows behind the last border with them (then any H below the next one).
    int64_t cached_tokens = 0;
  };
  // The point with the greatest position P that serves: P < N (at least one row must be computed)
  // and P <= H (PAGES below P are not written again); in exact mode it has decoder windows; else
  // P <= N - W or the entrance rows of [N - W, P) are in it.  Marks it as used.  Costs a look-up a
  // block of the chain at most, from its end; never allocates in steady state.
  std::optional<ResumePoint> best(const Query& query);

  int64_t bytes() const { return bytes_; }
  int64_t size() const { return static_cast<int64_t>(by_use_.size()); }
  // Forgets all points; returns their images.
  std::vector<ImageId> clear();
  // Aborts if an index, list or sum disagrees.  O(size log size).
  void check_integrity() const;

 private:
  // Ids with the digests of media spliced in where they begin.
  using Tail = std::vector<int32_t>;
  using TailView = std::span<const int32_t>;
  struct Entry {
    ResumePoint point;
    BlockKey parent;
    Tail tail;
  };
  using EntryRef = std::list<Entry>::iterator;
  struct TailLess {
    using is_transparent = void;
    bool operator()(const EntryRef& a, const EntryRef& b) const;
    bool operator()(const EntryRef& a, TailView b) const;
    bool operator()(TailView a, const EntryRef& b) const;
  };
  // The points behind one block.  Sorted, so that those whose tail begins a given text are found
  // by a few searches however many share the block.  Equal tails: see add.
  using Siblings = std::set<EntryRef, TailLess>;

  void splice(std::span<const int32_t> ids, int64_t start, std::span<const MediaStart> media,
              Tail& out) const;
  std::optional<EntryRef> best_behind(const Siblings& siblings, TailView tail,
                                      const Query& query) const;
  ImageId remove(EntryRef entry);

  int64_t budget_bytes_, bytes_ = 0;
  int32_t block_tokens_;
  std::list<Entry> by_use_;  // most recent first
  std::unordered_map<BlockKey, Siblings, BlockKeyHash> by_parent_;
  Tail wanted_;  // of best, reused
};

}  // namespace fathom::kvcache
