// From one row of logits to one token.
//
// Order: logit bias (amounts for one id added up), penalties (repetition, presence, frequency),
// masks (allowed ids, bad words, a grammar's, forbidden ids), temperature, then min-p, top-k and
// top-p on the probabilities, then the draw.  Each filter sees the distribution that the filter
// before it left, renormalized; among equal logits the lowest id counts as the likelier. Top-p
// keeps a token while the mass before it is below p, so at least one.  Log-probabilities are of the
// raw distribution (before any of these), as the OpenAI API has them.
//
// Noise has an address: the draw depends on the logits and on (seed, position, purpose) only, never
// on the batch, the thread or the time (design rule 5).  The draw is by Gumbel noise: argmax of log
// p + g(token), so the same noise at the same position gives the same token from the same logits,
// for drafts and targets alike.
//
// Values at the edge: a temperature below 1e-5 is greedy.  A logit of -inf is never chosen.  Logits
// of +inf share all of the probability equally.  NaN, or nothing left to choose, is an error of
// this request.
//
// Thread: any; a Sampler has scratch memory of its own and is used by one thread at a time. Nothing
// is allocated by `sample` but Sample::top.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fathom/sampling_params.h"
#include "fathom/status.h"
#include "kernels/row_draw/choose.h"

namespace fathom::sampler {

// Separate streams of noise at one position.
enum class Purpose : uint32_t { kToken = 0, kDraftAccept = 1, kDraftResidual = 2 };

// Uniform 64 bits from an address; the same on every platform.
uint64_t noise_bits(uint64_t seed, int64_t position, Purpose purpose, int64_t index);

struct Sample {
  int32_t id = -1;
  float logprob = 0;              // set if params.logprobs >= 0
  std::vector<TokenLogprob> top;  // params.logprobs entries, best first, lower id first on ties
};

// What penalties count and bad words are looked for in (output only).  Ids outside the vocabulary
// (the rows of an image) count for nothing. Read in full at each call if a penalty is set: O(prompt
// + output).
struct History {
  std::span<const int32_t> prompt;
  std::span<const int32_t> output;
};

// How kernels/row_draw draws the token at `position`, its mask and its edits aside.  `params` must
// be ones that validate() accepts.
kernels::RowDraw row_draw(const SamplingParams& params, uint64_t seed, int64_t position);

// Whether a bias or penalties change logits: Sampler::add_edits() is needed; whether how depends on
// what was answered so far; and how many it adds at most.
bool has_edits(const SamplingParams& params);
bool edits_depend_on_output(const SamplingParams& params);
int64_t most_edits(const SamplingParams& params, const History& history, int64_t vocab_size);

// Whether anything but its logit keeps a token from being chosen: build_mask() is needed.
bool has_mask(const SamplingParams& params, std::span<const uint32_t> allowed,
              std::span<const int32_t> forbidden);
// What may be chosen behind `output`, as Sampler::sample has it: `allowed` (empty: all) without
// what the request's allowed_ids and bad_words and `forbidden` leave out. `mask`: as `allowed`,
// kernels::mask_words(vocab_size).
void build_mask(const SamplingParams& params, std::span<const int32_t> output,
                std::span<const uint32_t> allowed, std::span<const int32_t> forbidden,
                std::span<uint32_t> mask);

// The error of a row of which nothing is left to choose.
Status nothing_error();

class Sampler {
 public:
  explicit Sampler(int32_t vocab_size);

  // `position` is that of the token being chosen.  `allowed`, if not empty, is a bitmask of
  // vocab_size bits (a grammar's), token id i at bit i % 32 of word i / 32; everything masked, or a
  // NaN among the logits, is an error of this request, and so are parameters that validate()
  // refuses.  `forbidden` ids (of the vocabulary) cannot be chosen either: those that would end the
  // answer before min_tokens.  Without `with_logprobs` only the id is worked out (of a draft).
  Result<Sample> sample(std::span<const float> logits, const SamplingParams& params, uint64_t seed,
                        int64_t position, const History& history,
                        std::span<const uint32_t> allowed = {},
                        std::span<const int32_t> forbidden = {}, bool with_logprobs = true);

  // What bias and penalties do to the logits of the token behind `history`: appends to `edits`, by
  // rising id, and sets the bits of these ids in `edited` (as `allowed`), and no others.
  void add_edits(const SamplingParams& params, const History& history, std::span<uint32_t> edited,
                 std::vector<kernels::LogitEdit>& edits);

 private:
  // The logits after bias, penalties and masks: the argument itself if none of them is set, else
  // work_.
  std::span<const float> edited(std::span<const float> logits, const SamplingParams& params,
                                const History& history, std::span<const uint32_t> allowed,
                                std::span<const int32_t> forbidden);

  int32_t vocab_size_;
  std::vector<float> work_;             // [vocab_size] edited logits
  std::vector<std::byte> scratch_;      // of the choice
  std::vector<int32_t> output_counts_;  // [vocab_size]; zero between calls
  std::vector<uint8_t> seen_;           // [vocab_size]; zero between calls
  std::vector<float> bias_;             // [vocab_size]; -0 between calls, which adds nothing
  std::vector<uint32_t> mask_;          // a bit an id: what may be chosen, or is edited
  std::vector<kernels::LogitEdit> edits_;
};

// Log-softmax of the raw logits: the value of `id` and the `k` likeliest.  Used for prompt
// log-probabilities. 0 <= id < logits.size().  A NaN among the logits makes every value NaN.
Sample raw_logprobs(std::span<const float> logits, int32_t id, int32_t k);

}  // namespace fathom::sampler
