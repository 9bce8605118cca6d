// The floors of a forward pass: what must be read and computed, from the config alone
// (docs/spec/model.md 12).
//
// Bytes go at the DRAM read rate.  Operations go at the peak of the unit that they need: products
// of fp4 expert weights and of fp4 index keys fit the int8 units; an e4m3 weight takes two int8
// planes, so half of that rate with int8 inputs and a quarter with e4m3 ones (numerics
// `reference`); bf16 weights, attention and hyper-connections need fp32.  These are the vectors'
// units, whatever else there is, so that ratios of all machines and kernels say the same; what AMX
// could do beside it is a floor of its own.
#pragma once

#include <cstdint>

#include "bench/peaks.h"
#include "fathom/request.h"
#include "kernels/kernel_table.h"
#include "model/config.h"

namespace fathom::bench {

struct Work {
  double int8_ops = 0;  // a multiply-add is 2
  double fp8_ops = 0;   // of fp8 weights
  double fp32_ops = 0;
  double bytes = 0;
  // Those of int8_ops and of fp8_ops in products of so many tokens that AMX's tiles can take them
  // (kernels::kAmxTokens).
  double amx_int8_ops = 0;
  double amx_fp8_ops = 0;
};
Work operator+(const Work& a, const Work& b);

// Seconds if every unit runs at its peak, one after the other, or memory at its rate, whichever is
// longer.
double floor_s(const Work& work, const Peaks& peaks, kernels::Numerics numerics);
// The same with AMX for all that it can take; 0: nothing (in `reference`, or few tokens), or its
// peak was not measured.
double amx_floor_s(const Work& work, const Peaks& peaks, kernels::Numerics numerics);

// A prompt of `tokens` from position 0, without head and draft stages.  Exact: all layers on all of
// it.  Replay: the decoder's layers on the last window only, its first one's compressor on all.
// Bytes: every dense weight and the experts that uniform routing touches, once.
Work prefill_work(const model::ModelConfig& config, int64_t tokens, PrefillMode mode);

// All layers on one row of each of `batch` sequences with `context` tokens; `experts_touched`
// distinct experts over all layers are read.
Work decode_work(const model::ModelConfig& config, int64_t batch, int64_t context,
                 int64_t experts_touched);

// Distinct experts that `tokens` tokens touch in all layers if routing is uniform.
double uniform_experts(const model::ModelConfig& config, int64_t tokens);

// A draft round of `batch` sequences, `num_drafts` each: the stages, with as many experts as
// uniform routing touches, the output head, and the Markov head once a draft.
Work draft_work(const model::ModelConfig& config, int64_t batch, int64_t num_drafts);

// The output head on `rows` rows.
Work head_work(const model::ModelConfig& config, int64_t rows);

}  // namespace fathom::bench
