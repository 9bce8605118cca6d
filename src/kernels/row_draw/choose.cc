#include "kernels/row_draw/choose.h"

#include <algorithm>
#include <cmath>

#include "kernels/row_draw/draw_math.h"

namespace fathom::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Filters cut a histogram of distances to the best logit (in units of log-probability) and sort
// only the bucket in which the cut lies: all of the vocabulary is read, almost none of it is
// sorted.
constexpr double kBucketsPerNat = 32;

struct Scan {
  float best = -kInf;
  bool has_nan = false;
};

// Independent lanes, which compilers make vectors of, so that a row costs its reading and not a
// chain of compares.
Scan scan(std::span<const float> x) {
  constexpr size_t kLanes = 16;
  float best[kLanes];
  uint32_t nan[kLanes] = {};
  std::fill(best, best + kLanes, -kInf);
  size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) {
      const float value = x[i + j];
      best[j] = value > best[j] ? value : best[j];
      nan[j] |= value != value ? 1u : 0u;
    }
  }
  for (; i < x.size(); ++i) {
    best[0] = x[i] > best[0] ? x[i] : best[0];
    nan[0] |= std::isnan(x[i]) ? 1u : 0u;
  }
  Scan result;
  for (size_t j = 0; j < kLanes; ++j) {
    result.best = std::max(result.best, best[j]);
    result.has_nan |= nan[j] != 0;
  }
  return result;
}

size_t bucket_of(double distance) {
  const double scaled = distance * kBucketsPerNat;
  return scaled < double{DrawScratch::kBuckets - 1} ? static_cast<size_t>(scaled)
                                                    : size_t{DrawScratch::kBuckets - 1};
}

// One row: its scores, the greatest of them, and the candidates left.
class Choice {
 public:
  Choice(std::span<const float> scores, float best, const RowDraw& draw, DrawScratch scratch)
      : scores_(scores), best_(best), draw_(draw), scratch_(scratch) {}

  int32_t run() {
    if (!draw_.filters()) {
      return draw(scores_.size(), [](size_t i) { return static_cast<int32_t>(i); });
    }
    num_ = 0;
    for (size_t i = 0; i < scores_.size(); ++i) {
      const auto id = static_cast<int32_t>(i);
      if (distance(id) <= draw_.max_distance && scores_[i] != -kInf) scratch_.order[num_++] = id;
    }
    if (draw_.top_k > 0 && static_cast<size_t>(draw_.top_k) < num_) {
      keep_front([](double) { return uint64_t{1}; },
                 [this](uint64_t) { return static_cast<uint64_t>(draw_.top_k); });
    }
    if (draw_.top_p < 1) {
      keep_front(mass_of, [this](uint64_t total) { return mass_limit(draw_.top_p, total); });
    }
    return draw(num_, [this](size_t i) { return scratch_.order[i]; });
  }

 private:
  float score(int32_t id) const { return scores_[static_cast<size_t>(id)]; }
  double distance(int32_t id) const {
    return draw_distance(score(id), best_, draw_.inv_temperature);
  }

  // Argmax of log p + Gumbel noise over the ids id_at(0..count-1).
  template <class IdAt>
  int32_t draw(size_t count, const IdAt& id_at) const {
    double best = std::numeric_limits<double>::lowest();
    int32_t best_id = kRowIsEmpty;
    for (size_t i = 0; i < count; ++i) {
      const int32_t id = id_at(i);
      const double log_p = -distance(id);
      if (log_p + kGumbelMax < best) continue;
      const double t = tail_probability(noise_bits(draw_.key, draw_.inner_key, id));
      // Two logarithms are spent only on tokens that may win.
      if (log_p + gumbel_bound(t) < best) continue;
      const double value = log_p + gumbel(t);
      if (value > best || (value == best && id < best_id)) {
        best = value;
        best_id = id;
      }
    }
    return best_id;
  }

  // Keeps the likeliest candidates while the weight before them is below the limit.
  template <class Weight, class Limit>
  void keep_front(const Weight& weight, const Limit& limit_of) {
    uint64_t* mass = scratch_.mass;
    std::fill(mass, mass + DrawScratch::kBuckets, uint64_t{0});
    uint64_t total = 0;
    for (size_t i = 0; i < num_; ++i) {
      const double d = distance(scratch_.order[i]);
      const uint64_t w = weight(d);
      mass[bucket_of(d)] += w;
      total += w;
    }
    const uint64_t limit = limit_of(total);
    uint64_t before = 0;
    size_t cut = 0;
    while (cut + 1 < DrawScratch::kBuckets && before + mass[cut] < limit) before += mass[cut++];

    size_t kept = 0, num_edge = 0;
    for (size_t i = 0; i < num_; ++i) {
      const int32_t id = scratch_.order[i];
      const size_t bucket = bucket_of(distance(id));
      if (bucket < cut) scratch_.order[kept++] = id;
      if (bucket == cut) scratch_.edge[num_edge++] = id;
    }
    const std::span<int32_t> edge(scratch_.edge, num_edge);
    std::sort(edge.begin(), edge.end(), [&](int32_t a, int32_t b) {
      return score(a) != score(b) ? score(a) > score(b) : a < b;
    });
    for (const int32_t id : edge) {
      if (before >= limit) break;
      scratch_.order[kept++] = id;
      before += weight(distance(id));
    }
    num_ = kept;
  }

  std::span<const float> scores_;
  float best_;
  const RowDraw& draw_;
  DrawScratch scratch_;
  size_t num_ = 0;  // of scratch_.order
};

}  // namespace

int32_t choose_token(std::span<const float> scores, const RowDraw& draw, DrawScratch scratch) {
  Scan found = scan(scores);
  if (found.has_nan) return kRowIsNan;
  if (found.best == -kInf) return kRowIsEmpty;
  if (draw.inv_temperature == 0) {
    return static_cast<int32_t>(std::find(scores.begin(), scores.end(), found.best) -
                                scores.begin());
  }
  if (found.best == kInf) {
    for (size_t i = 0; i < scores.size(); ++i) {
      scratch.scores[i] = scores[i] == kInf ? 0 : -kInf;
    }
    scores = {scratch.scores, scores.size()};
    found.best = 0;
  }
  return Choice(scores, found.best, draw, scratch).run();
}

void apply_edits(std::span<const LogitEdit> edits, std::span<float> scores) {
  for (const LogitEdit& edit : edits) {
    float& x = scores[static_cast<size_t>(edit.id)];
    x = edit.applied_to(x);
  }
}

void apply_token_mask(std::span<const uint32_t> mask, std::span<float> scores) {
  for (size_t word = 0; word < mask.size(); ++word) {
    if (mask[word] == ~0u) continue;
    const size_t end = std::min(word * 32 + 32, scores.size());
    for (size_t i = word * 32; i < end; ++i) {
      if (((mask[word] >> (i % 32)) & 1u) == 0) scores[i] = -kInf;
    }
  }
}

}  // namespace fathom::kernels
