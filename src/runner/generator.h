// Runs requests on one model, several at once: a step computes one decode token for every running
// sequence and prompt chunks for the rest of the row budget, all in one forward.
//
// A request's tokens depend on its ids, parameters and seed only, not on what runs beside it.
// Requests start in the order in which they came, when there are blocks for prompt and max_tokens
// together.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "fathom/request.h"
#include "runner/loaded_model.h"
#include "runner/sequence.h"
#include "sampler/sampler.h"

namespace fathom::runner {

struct GeneratorOptions {
  PrefillMode prefill = PrefillMode::kReplay;
  int32_t max_batch = 16;                      // sequences in one step, >= 1
  int32_t chunk_tokens = 512;                  // rows in one step, >= 1
  int64_t kv_memory_bytes = int64_t{1} << 30;  // budget of PAGES; used as sequences fill it
};

class Generator {
 public:
  // `model` must outlive the generator.
  static Result<std::unique_ptr<Generator>> create(model::Model& model,
                                                   const GeneratorOptions& options);

  // Queues a request.  Errors: empty prompt, ids outside the vocabulary, prompt and max_tokens
  // beyond the context, parameters out of range, more blocks than there are at all.
  // params.max_tokens 0 = up to the context. A request without a seed gets one (see seed_of).
  Result<RequestId> submit(Request request);
  // The seed that a submitted request samples with; valid until its last event.
  uint64_t seed_of(RequestId id) const;

  // One step; its events are in the order of submission.  Empty only when nothing is left to do or
  // a step was spent on prompts.
  std::vector<TokenEvent> step();
  bool idle() const { return running_.empty() && waiting_.empty() && cancelled_.empty(); }

  // Ends a request: its last event comes with the next step.  No-op if it is done already.
  void cancel(RequestId id);

 private:
  struct Job {
    RequestId id;
    Request request;
    uint64_t seed;
    int32_t max_tokens;
    std::unique_ptr<Sequence> sequence;  // set when running
  };

  Generator(model::Model& model, const GeneratorOptions& options,
            std::unique_ptr<kvtier::PagedStorage> storage);
  Status check(const Request& request) const;
  void admit();
  // Rows of each running job in the next step; 0 = none this time.
  std::vector<int32_t> plan() const;
  TokenEvent take_token(Job& job, std::span<const float> logits);

  model::Model& model_;
  GeneratorOptions options_;
  std::unique_ptr<kvtier::PagedStorage> storage_;
  sampler::Sampler sampler_;
  std::deque<Job> waiting_;
  std::vector<Job> running_;
  std::vector<RequestId> cancelled_;
  std::vector<float> logits_;
  RequestId next_id_ = 1;
};

}  // namespace fathom::runner
