#include "runner/generator.h"

#include <algorithm>
#include <random>
#include <string>

#include "base/check.h"

namespace fathom::runner {
namespace {

Status refuse(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

uint64_t draw_seed() {
  std::random_device device;
  return (uint64_t{device()} << 32 | device()) & 0x7fffffffffffffffu;
}

}  // namespace

Result<std::unique_ptr<Generator>> Generator::create(model::Model& model,
                                                     const GeneratorOptions& options) {
  FATHOM_CHECK(options.max_batch >= 1 && options.chunk_tokens >= 1);
  const int64_t num_blocks = options.kv_memory_bytes / model.kv_layout().block_bytes();
  if (num_blocks < 1) {
    return Status(StatusCode::kResourceExhausted,
                  "--kv-memory of " + std::to_string(options.kv_memory_bytes) +
                      " bytes holds no block of " +
                      std::to_string(model.kv_layout().block_bytes()));
  }
  FATHOM_ASSIGN(auto storage,
                kvtier::PagedStorage::create(model.kv_layout().block_bytes(), num_blocks));
  return std::unique_ptr<Generator>(new Generator(model, options, std::move(storage)));
}

Generator::Generator(model::Model& model, const GeneratorOptions& options,
                     std::unique_ptr<kvtier::PagedStorage> storage)
    : model_(model),
      options_(options),
      storage_(std::move(storage)),
      sampler_(model.config().vocab_size) {}

Status Generator::check(const Request& request) const {
  const model::ModelConfig& c = model_.config();
  if (request.prompt.empty()) return refuse("the prompt is empty; give at least one token");
  for (size_t i = 0; i < request.prompt.size(); ++i) {
    const int32_t id = request.prompt[i];
    if (id < 0 || id >= c.vocab_size) {
      return refuse("prompt token " + std::to_string(i) + " is " + std::to_string(id) +
                    ", the vocabulary has ids 0 to " + std::to_string(c.vocab_size - 1));
    }
  }
  FATHOM_TRY(request.params.validate(c.vocab_size));
  const auto num_prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t asked = std::max(request.params.max_tokens, 1);
  if (num_prompt + asked > c.max_position_embeddings) {
    return refuse("the model's context is " + std::to_string(c.max_position_embeddings) +
                  " tokens, the prompt has " + std::to_string(num_prompt) + " and " +
                  std::to_string(asked) + " more are wanted; shorten one of them");
  }
  const int64_t blocks = Sequence::blocks_for(model_, num_prompt + asked);
  if (blocks > storage_->num_blocks()) {
    return Status(StatusCode::kResourceExhausted, "the request needs " + std::to_string(blocks) +
                                                      " KV blocks, --kv-memory holds " +
                                                      std::to_string(storage_->num_blocks()) +
                                                      "; give more, or fewer --max-tokens");
  }
  return Status();
}

Result<RequestId> Generator::submit(Request request) {
  FATHOM_TRY(check(request));
  const auto num_prompt = static_cast<int64_t>(request.prompt.size());
  int64_t limit = model_.config().max_position_embeddings - num_prompt;
  limit = std::min(limit, storage_->num_blocks() * model_.kv_layout().block_tokens() - num_prompt);
  if (request.params.max_tokens > 0) limit = std::min<int64_t>(limit, request.params.max_tokens);
  const uint64_t seed = request.params.seed.has_value() ? *request.params.seed : draw_seed();
  const RequestId id = next_id_++;
  waiting_.push_back({id, std::move(request), seed, static_cast<int32_t>(limit), nullptr});
  return id;
}

uint64_t Generator::seed_of(RequestId id) const {
  for (const Job& job : running_) {
    if (job.id == id) return job.seed;
  }
  for (const Job& job : waiting_) {
    if (job.id == id) return job.seed;
  }
  FATHOM_CHECK(false) << "request " << id << " is not queued";
  return 0;
}

void Generator::cancel(RequestId id) {
  auto is_it = [id](const Job& job) { return job.id == id; };
  const bool found = std::erase_if(running_, is_it) + std::erase_if(waiting_, is_it) > 0;
  if (found) cancelled_.push_back(id);
}

void Generator::admit() {
  while (!waiting_.empty() && static_cast<int32_t>(running_.size()) < options_.max_batch) {
    Job& job = waiting_.front();
    const auto num_prompt = static_cast<int64_t>(job.request.prompt.size());
    job.sequence = Sequence::create(model_, *storage_, job.request.prompt,
                                    job.request.prefill.value_or(options_.prefill),
                                    num_prompt + job.max_tokens);
    if (job.sequence == nullptr) return;
    running_.push_back(std::move(job));
    waiting_.pop_front();
  }
}

// Decodes first, so that a long prompt never holds up a running answer; prompts share what is left.
std::vector<int32_t> Generator::plan() const {
  std::vector<int32_t> rows(running_.size(), 0);
  int64_t budget = std::max<int64_t>(options_.chunk_tokens, static_cast<int64_t>(running_.size()));
  for (const bool prompts : {false, true}) {
    for (size_t i = 0; i < running_.size(); ++i) {
      const Sequence& s = *running_[i].sequence;
      const int64_t left = s.num_known() - s.num_computed();
      if ((left > 1) != prompts) continue;
      rows[i] = static_cast<int32_t>(std::min(left, budget));
      budget -= rows[i];
    }
  }
  return rows;
}

std::vector<TokenEvent> Generator::step() {
  std::vector<TokenEvent> events;
  for (const RequestId id : cancelled_) {
    events.push_back({.request = id, .finish = FinishReason::kCancelled});
  }
  cancelled_.clear();
  admit();
  if (running_.empty()) return events;

  const std::vector<int32_t> rows = plan();
  model::Batch batch;
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence& s = *running_[i].sequence;
    const bool complete = s.num_computed() + rows[i] == s.num_known();
    if (rows[i] > 0) batch.segments.push_back(s.next_segment(rows[i], complete ? 1 : 0));
  }
  const auto vocab = static_cast<size_t>(model_.config().vocab_size);
  logits_.resize(static_cast<size_t>(model::Model::num_logit_rows(batch)) * vocab);
  model_.forward(batch, logits_);

  size_t logit_row = 0;
  for (size_t i = 0; i < running_.size(); ++i) {
    Job& job = running_[i];
    job.sequence->advance(rows[i]);
    if (rows[i] == 0 || job.sequence->num_computed() < job.sequence->num_known()) continue;
    events.push_back(take_token(job, std::span(logits_).subspan(logit_row++ * vocab, vocab)));
    if (events.back().finish != FinishReason::kNone) job.sequence.reset();
  }
  std::erase_if(running_, [](const Job& job) { return job.sequence == nullptr; });
  return events;
}

TokenEvent Generator::take_token(Job& job, std::span<const float> logits) {
  Sequence& s = *job.sequence;
  TokenEvent event{.request = job.id};
  Result<sampler::Sample> sample = sampler_.sample(logits, job.request.params, job.seed,
                                                   s.num_known(), {s.prompt(), s.output()});
  if (!sample) {
    event.finish = FinishReason::kError;
    event.error = std::move(sample).error();
    return event;
  }
  event.token = sample->id;
  event.logprob = sample->logprob;
  event.top = std::move(sample->top);
  s.append(sample->id);
  if (sample->id == model_.config().eos_token_id && !job.request.params.ignore_eos) {
    event.finish = FinishReason::kStop;
  } else if (static_cast<int32_t>(s.output().size()) >= job.max_tokens) {
    event.finish = FinishReason::kLength;
  }
  return event;
}

}  // namespace fathom::runner
