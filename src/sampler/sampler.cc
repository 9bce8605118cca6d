#include "sampler/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "base/check.h"
#include "sampler/noise.h"

namespace fathom::sampler {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kGreedyBelow = 1e-5f;

// Filters cut a histogram of distances to the best logit (in units of log-probability) and sort
// only the bucket in which the cut lies: all of the vocabulary is read, almost none of it is
// sorted.
constexpr size_t kNumBuckets = 2048;
constexpr double kBucketsPerNat = 32;

struct Scan {
  float best = -kInf;
  bool has_nan = false;
};

// Independent lanes, so that a row costs its reading and not a chain of compares.
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

int32_t first_equal(std::span<const float> x, float value) {
  return static_cast<int32_t>(std::find(x.begin(), x.end(), value) - x.begin());
}

Status nan_error(std::span<const float> logits) {
  const auto at = std::find_if(logits.begin(), logits.end(), [](float v) { return std::isnan(v); });
  return {StatusCode::kInternal, "the logit of token id " + std::to_string(at - logits.begin()) +
                                     " is NaN; the model's output cannot be sampled"};
}

double distance(float score, float best, double inv_temperature) {
  return (double{best} - double{score}) * inv_temperature;
}

size_t bucket_of(double distance) {
  const double scaled = distance * kBucketsPerNat;
  return scaled < double{kNumBuckets - 1} ? static_cast<size_t>(scaled) : kNumBuckets - 1;
}

// At least -log(t), and at most 0.06 more, at the price of a conversion: the bits of a double, read
// as an integer, are a piecewise linear log2 that never exceeds the true one.
double gumbel_bound(double t) {
  constexpr double kLn2 = 0.6931471805599453;
  const double log2 = static_cast<double>(std::bit_cast<int64_t>(t)) * 0x1p-52 - 1023;
  return -kLn2 * log2 + 1e-9;
}

// Argmax of log p + Gumbel noise over the ids id_at(0..count-1), lowest id on ties.  `scores` must
// hold a value above -inf at one of them.
template <class IdAt>
int32_t draw(std::span<const float> scores, float best_score, double inv_temperature,
             const NoiseStream& noise, size_t count, const IdAt& id_at) {
  double best = std::numeric_limits<double>::lowest();
  int32_t best_id = -1;
  for (size_t i = 0; i < count; ++i) {
    const int32_t id = id_at(i);
    const double log_p = -distance(scores[static_cast<size_t>(id)], best_score, inv_temperature);
    if (log_p + kGumbelMax < best) continue;
    const double t = tail_probability(noise.bits(id));
    // -log(-log1p(-t)) <= -log(t): two logarithms are spent only on tokens that may win.
    if (log_p + gumbel_bound(t) < best) continue;
    const double value = log_p + gumbel(t);
    if (value > best || (value == best && id < best_id)) {
      best = value;
      best_id = id;
    }
  }
  return best_id;
}

}  // namespace

bool takes_likeliest(const SamplingParams& params) {
  return params.temperature < kGreedyBelow && params.repetition_penalty == 1 &&
         params.presence_penalty == 0 && params.frequency_penalty == 0 &&
         params.logit_bias.empty() && params.allowed_ids.empty() && params.bad_words.empty();
}

Sampler::Sampler(int32_t vocab_size) : vocab_size_(vocab_size) {
  FATHOM_CHECK(vocab_size > 0) << vocab_size;
  const auto size = static_cast<size_t>(vocab_size);
  work_.resize(size);
  order_.reserve(size);
  edge_.reserve(size);
  mass_.resize(kNumBuckets);
  mask_.resize((size + 31) / 32);
  output_counts_.resize(size);
  seen_.resize(size);
  touched_.reserve(size);
}

Result<Sample> Sampler::sample(std::span<const float> logits, const SamplingParams& params,
                               uint64_t seed, int64_t position, const History& history,
                               std::span<const uint32_t> allowed,
                               std::span<const int32_t> forbidden, bool with_logprobs) {
  const auto size = static_cast<size_t>(vocab_size_);
  if (logits.size() != size) {
    return Status(StatusCode::kInternal, "got " + std::to_string(logits.size()) +
                                             " logits for a vocabulary of " + std::to_string(size));
  }
  if (!allowed.empty() && allowed.size() != (size + 31) / 32) {
    return Status(StatusCode::kInternal, "the token mask has " + std::to_string(allowed.size()) +
                                             " words, not " + std::to_string((size + 31) / 32));
  }
  FATHOM_TRY(params.validate(vocab_size_));

  Scan found = scan(logits);
  if (found.has_nan) return nan_error(logits);
  std::span<const float> scores = edited(logits, params, history, allowed, forbidden);
  if (scores.data() != logits.data()) found = scan(scores);
  if (found.best == -kInf) {
    return Status(StatusCode::kInvalidArgument,
                  "no token can be chosen: every token is masked or has a logit of -inf");
  }

  Sample result;
  if (params.temperature < kGreedyBelow) {
    result.id = first_equal(scores, found.best);
  } else {
    if (found.best == kInf) {
      for (size_t i = 0; i < size; ++i) work_[i] = scores[i] == kInf ? 0 : -kInf;
      scores = work_;
      found.best = 0;
    }
    const double inv_temperature = 1 / double{params.temperature};
    const NoiseStream noise(seed, position, Purpose::kToken);
    if (params.min_p > 0 || params.top_k > 0 || params.top_p < 1) {
      filter(scores, found.best, inv_temperature, params);
      result.id = draw(scores, found.best, inv_temperature, noise, order_.size(),
                       [this](size_t i) { return order_[i]; });
    } else {
      result.id = draw(scores, found.best, inv_temperature, noise, size,
                       [](size_t i) { return static_cast<int32_t>(i); });
    }
  }
  FATHOM_CHECK(result.id >= 0) << "no candidate survived the filters";
  if (with_logprobs && params.logprobs >= 0) {
    return raw_logprobs(logits, result.id, params.logprobs);
  }
  return result;
}

std::span<const float> Sampler::edited(std::span<const float> logits, const SamplingParams& params,
                                       const History& history, std::span<const uint32_t> allowed,
                                       std::span<const int32_t> forbidden) {
  const bool has_penalty = params.repetition_penalty != 1 || params.presence_penalty != 0 ||
                           params.frequency_penalty != 0;
  const bool has_mask = !allowed.empty() || !forbidden.empty() || !params.allowed_ids.empty() ||
                        !params.bad_words.empty();
  if (params.logit_bias.empty() && !has_penalty && !has_mask) return logits;
  std::copy(logits.begin(), logits.end(), work_.begin());
  for (const auto& [id, bias] : params.logit_bias) work_[static_cast<size_t>(id)] += bias;
  if (has_penalty) apply_penalties(params, history);
  if (!params.allowed_ids.empty()) {
    std::fill(mask_.begin(), mask_.end(), 0u);
    for (const int32_t id : params.allowed_ids) {
      mask_[static_cast<size_t>(id) / 32] |= 1u << (static_cast<size_t>(id) % 32);
    }
    apply_mask(mask_);
  }
  apply_mask(allowed);
  apply_bad_words(params, history.output);
  for (const int32_t id : forbidden) work_[static_cast<size_t>(id)] = -kInf;
  return work_;
}

void Sampler::apply_mask(std::span<const uint32_t> allowed) {
  for (size_t word = 0; word < allowed.size(); ++word) {
    if (allowed[word] == ~0u) continue;
    const size_t end = std::min(word * 32 + 32, work_.size());
    for (size_t i = word * 32; i < end; ++i) {
      if (((allowed[word] >> (i % 32)) & 1u) == 0) work_[i] = -kInf;
    }
  }
}

void Sampler::apply_bad_words(const SamplingParams& params, std::span<const int32_t> output) {
  for (const std::vector<int32_t>& word : params.bad_words) {
    const auto before = std::span(word).first(word.size() - 1);
    if (before.size() > output.size()) continue;
    const auto end = output.last(before.size());
    if (std::equal(before.begin(), before.end(), end.begin())) {
      work_[static_cast<size_t>(word.back())] = -kInf;
    }
  }
}

// As vLLM's apply_all_penalties: repetition first, then frequency, then presence.
void Sampler::apply_penalties(const SamplingParams& params, const History& history) {
  const auto note = [this](int32_t id, int32_t count) {
    if (id < 0 || id >= vocab_size_) return;
    const auto i = static_cast<size_t>(id);
    if (seen_[i] == 0) touched_.push_back(id);
    seen_[i] = 1;
    output_counts_[i] += count;
  };
  for (const int32_t id : history.prompt) note(id, 0);
  for (const int32_t id : history.output) note(id, 1);
  for (const int32_t id : touched_) {
    const auto i = static_cast<size_t>(id);
    float& x = work_[i];
    x = x > 0 ? x / params.repetition_penalty : x * params.repetition_penalty;
    x -= params.frequency_penalty * static_cast<float>(output_counts_[i]);
    if (output_counts_[i] > 0) x -= params.presence_penalty;
    output_counts_[i] = 0;
    seen_[i] = 0;
  }
  touched_.clear();
}

void Sampler::filter(std::span<const float> scores, float best, double inv_temperature,
                     const SamplingParams& params) {
  // Without min-p the limit is infinite, and only logits of -inf lie at that distance.
  const double limit = params.min_p > 0 ? -std::log(double{params.min_p}) : double{kInf};
  order_.clear();
  for (size_t i = 0; i < scores.size(); ++i) {
    const double d = distance(scores[i], best, inv_temperature);
    if (d <= limit && scores[i] != -kInf) order_.push_back(static_cast<int32_t>(i));
  }
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < order_.size()) {
    keep_front(scores, best, inv_temperature, params.top_k, /*is_share=*/false,
               [](double) { return 1.0; });
  }
  if (params.top_p < 1) {
    keep_front(scores, best, inv_temperature, double{params.top_p}, /*is_share=*/true,
               [](double d) { return std::exp(-d); });
  }
}

template <class Weight>
void Sampler::keep_front(std::span<const float> scores, float best, double inv_temperature,
                         double limit, bool is_share, const Weight& weight) {
  const auto distance_of = [&](int32_t id) {
    return distance(scores[static_cast<size_t>(id)], best, inv_temperature);
  };
  std::fill(mass_.begin(), mass_.end(), 0.0);
  for (const int32_t id : order_) {
    const double d = distance_of(id);
    mass_[bucket_of(d)] += weight(d);
  }
  if (is_share) {
    double total = 0;
    for (const double mass : mass_) total += mass;
    limit *= total;
  }
  double before = 0;
  size_t cut = 0;
  while (cut + 1 < kNumBuckets && before + mass_[cut] < limit) before += mass_[cut++];

  edge_.clear();
  size_t kept = 0;
  for (const int32_t id : order_) {
    const size_t bucket = bucket_of(distance_of(id));
    if (bucket < cut) order_[kept++] = id;
    if (bucket == cut) edge_.push_back(id);
  }
  order_.resize(kept);
  std::sort(edge_.begin(), edge_.end(), [&](int32_t a, int32_t b) {
    const float x = scores[static_cast<size_t>(a)];
    const float y = scores[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  });
  for (const int32_t id : edge_) {
    if (before >= limit) break;
    order_.push_back(id);
    before += weight(distance_of(id));
  }
}

}  // namespace fathom::sampler
