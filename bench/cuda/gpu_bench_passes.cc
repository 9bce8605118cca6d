#include "cuda/gpu_bench_passes.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "cuda/gpu_bench.h"

namespace fathom::gpu_bench {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void report(const Status& status) {
  if (!status.ok()) std::fprintf(stderr, "gpu_bench: %s\n", status.to_string().c_str());
}

// As the runner's: a sequence's own seed, the noise of the token's position.
class RoundSampler : public model::DraftSampler {
 public:
  RoundSampler(const Choice& choice, std::span<const model::DraftSegment> segments,
               sampler::Sampler& sampler)
      : choice_(choice), segments_(segments), sampler_(sampler) {}

  bool draws_ahead() const override { return !choice_.on_host; }
  bool draw(size_t segment, int32_t i, model::RowDraws& draws) override {
    if (choice_.on_host) return false;
    draws.rows.push_back(sampler::row_draw(choice_.params, segment, position(segment, i)));
    return true;
  }
  int32_t choose(size_t segment, int32_t i, std::span<const float> logits) override {
    return must(sampler_.sample(logits, choice_.params, segment, position(segment, i), {})).id;
  }

 private:
  int64_t position(size_t segment, int32_t i) const { return segments_[segment].start + 1 + i; }

  const Choice& choice_;
  std::span<const model::DraftSegment> segments_;
  sampler::Sampler& sampler_;
};

}  // namespace

std::vector<Choice> edited_choices() {
  SamplingParams plain, penalties, logprobs;
  penalties.repetition_penalty = 1.1f;
  penalties.presence_penalty = penalties.frequency_penalty = 0.5f;
  penalties.logit_bias = {{17, 2.0f}, {4711, -100.0f}};
  logprobs.logprobs = 5;
  return {{"plain, GPU", false, plain},
          {"mask, GPU", false, plain, true},
          {"penalties and bias, GPU", false, penalties},
          {"5 log-probabilities, GPU", false, logprobs},
          {"mask, host", true, plain, true},
          {"penalties and bias, host", true, penalties},
          {"5 log-probabilities, host", true, logprobs}};
}

std::vector<Choice> all_choices() {
  SamplingParams greedy, sampled, top_p;
  greedy.temperature = 0;
  top_p.top_p = 0.95f;
  return {{"greedy, GPU", false, greedy},         {"temperature 1, GPU", false, sampled},
          {"with top-p 0.95, GPU", false, top_p}, {"greedy, host", true, greedy},
          {"temperature 1, host", true, sampled}, {"with top-p 0.95, host", true, top_p}};
}

Passes::Passes(model::Model& model, CudaStream& stream)
    : model_(model), stream_(stream), sampler_(model.config().vocab_size) {
  constexpr int64_t kBlocksEach = 40;
  const int64_t block_bytes = model.kv_layout().block_bytes();
  sequences_.resize(kMostSequences);
  for (Sequence& s : sequences_) {
    s.state = must(model.device().allocate(model.state_layout().bytes()));
    s.pages = must(model.device().allocate(kBlocksEach * block_bytes));
    for (int64_t b = 0; b < kBlocksEach; ++b) s.blocks.push_back(s.pages.data() + b * block_bytes);
  }
  for (size_t i = 0; i < 4096; ++i) ids_.push_back(static_cast<int32_t>(i * 7919 % 100000));
}

double Passes::forward(const Segments& segments, const Choice* choice) {
  model::Batch batch;
  batch.keep_draft_rows = segments.keep_draft_rows;
  for (int64_t i = 0; i < segments.batch; ++i) {
    Sequence& s = at(i);
    if (segments.restart) s.position = 0;
    model::Segment segment;
    segment.state = s.state.data();
    segment.blocks = s.blocks.data();
    segment.start = s.position;
    segment.num_rows = segments.rows;
    // Not the same for all, or all would pick the same experts.
    segment.ids = std::span<const int32_t>(ids_).subspan(static_cast<size_t>(i) * 8,
                                                         static_cast<size_t>(segments.rows));
    segment.num_logits = segments.num_logits;
    batch.segments.push_back(segment);
    s.position += segments.rows;
  }
  const auto begin = std::chrono::steady_clock::now();
  model_.forward_kept(batch);
  report(choice == nullptr ? stream_.synchronize() : choose(*choice, batch));
  return seconds_since(begin);
}

Status Passes::choose(const Choice& choice, const model::Batch& batch) {
  rows_.clear();
  draws_.clear();
  tokens_.clear();
  const auto each = [&](const auto& fn) {
    int64_t row = 0;
    for (size_t i = 0; i < batch.segments.size(); ++i) {
      const model::Segment& s = batch.segments[i];
      for (int32_t k = 0; k < s.num_logits; ++k) {
        fn(row++, i, s.start + s.num_rows - s.num_logits + k + 1);
      }
    }
  };
  each([&](int64_t row, uint64_t seed, int64_t position) {
    rows_.push_back(row);
    if (!choice.on_host) add_draw(choice, seed, position);
  });
  tokens_.resize(rows_.size());
  shown_.resize(rows_.size());
  if (!choice.on_host) {
    FATHOM_TRY(model_.take(draws_, rows_, tokens_, {}, {}, &logprobs_));
    num_undecided_ += std::count(tokens_.begin(), tokens_.end(), kernels::kRowUndecided);
    return Status();
  }
  FATHOM_TRY(model_.take({}, {}, {}, rows_, shown_));
  const auto vocab = static_cast<size_t>(model_.config().vocab_size);
  each([&](int64_t row, uint64_t seed, int64_t position) {
    const auto r = static_cast<size_t>(row);
    tokens_[r] = must(sampler_.sample({shown_[r], vocab}, choice.params, seed, position,
                                      {{}, history()}, mask_of(choice)))
                     .id;
  });
  return Status();
}

// What penalties count: 1,024 tokens, as many as the contexts have.
std::span<const int32_t> Passes::history() const { return std::span(ids_).first(1024); }

// As of a grammar inside of a string: most of the vocabulary.
std::span<const uint32_t> Passes::mask_of(const Choice& choice) {
  if (!choice.masked) return {};
  const auto words = static_cast<size_t>(kernels::mask_words(model_.config().vocab_size));
  if (mask_.empty()) mask_.assign(words, 0xfffffff7u);
  return mask_;
}

// As the runner's SlotSampler.
void Passes::add_draw(const Choice& choice, uint64_t seed, int64_t position) {
  kernels::RowDraw draw = sampler::row_draw(choice.params, seed, position);
  const auto words = static_cast<size_t>(kernels::mask_words(model_.config().vocab_size));
  if (sampler::has_edits(choice.params)) {
    const auto first = std::ssize(draws_.edits);
    sampler_.add_edits(choice.params, {{}, history()}, draws_.add_mask(words, draw.edited),
                       draws_.edits);
    draw.first_edit = static_cast<int32_t>(first);
    draw.num_edits = static_cast<int32_t>(std::ssize(draws_.edits) - first);
  }
  if (choice.masked) {
    sampler::build_mask(choice.params, history(), mask_of(choice), {},
                        draws_.add_mask(words, draw.mask));
  }
  if (choice.params.logprobs >= 0) {
    draws_.with_logprobs.push_back(std::ssize(draws_.rows));
    draws_.num_top = choice.params.logprobs;
  }
  draws_.rows.push_back(draw);
}

double Passes::draft(int64_t batch, int32_t num_drafts, const Choice& choice) {
  draft_segments_.clear();
  for (int64_t i = 0; i < batch; ++i) {
    const Sequence& s = at(i);
    draft_segments_.push_back({s.state.data(), s.position, s.position, 1, num_drafts});
  }
  drafts_.resize(draft_segments_.size());
  RoundSampler sampler(choice, draft_segments_, sampler_);
  const auto begin = std::chrono::steady_clock::now();
  report(model_.draft(draft_segments_, sampler, drafts_));
  return seconds_since(begin);
}

void Passes::give_context(int64_t batch, bool keep_draft_rows) {
  forward({.batch = 1,
           .rows = 1024,
           .num_logits = 0,
           .restart = true,
           .keep_draft_rows = keep_draft_rows},
          nullptr);
  const Sequence& from = at(0);
  for (int64_t i = 1; i < batch; ++i) {
    Sequence& s = at(i);
    stream_.copy(s.state.data(), from.state.data(), static_cast<size_t>(from.state.size()));
    stream_.copy(s.pages.data(), from.pages.data(), static_cast<size_t>(from.pages.size()));
    s.position = from.position;
  }
}

}  // namespace fathom::gpu_bench
