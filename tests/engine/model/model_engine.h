// The engine over a real model, in the many ways in which it can be run.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/answers.h"
#include "engine/engine_loop.h"
#include "grammar/grammar_store.h"
#include "harness/test_model.h"
#include "runner/local_executor.h"

namespace fathom::engine {

struct Condition {
  std::string name = {};
  int32_t num_slots = 6;
  int32_t num_blocks = 300;
  int32_t step_tokens = 512;
  int num_threads = 2;
  bool small_blocks = false;  // a sequence then asks for more of them often
  bool asynchronous = true;
  bool prefix_cache = true;
  bool replay_windows = false;
  int32_t max_draft = 0;
  bool sizes_drafts = false;  // by measured times: how many are checked then depends on the machine
  int64_t resume_every = 64;
  int64_t resume_budget_bytes = int64_t{1} << 28;
  uint64_t order = 0;  // != 0: requests in an order drawn from it
  int num_rounds = 1;  // all requests so often; the last round is compared
};

// What must be the same, in an order that can be compared.
inline std::vector<uint32_t> bits_of(const Answer& a) {
  std::vector<uint32_t> bits;
  const auto add = [&](const TokenLogprob& t) {
    uint32_t value = 0;
    std::memcpy(&value, &t.logprob, 4);
    bits.push_back(static_cast<uint32_t>(t.id));
    bits.push_back(value);
  };
  for (const TokenLogprob& t : a.logprobs) add(t);
  for (const PromptLogprob& p : a.prompt_logprobs) {
    add(p.token);
    for (const TokenLogprob& t : p.top) add(t);
  }
  bits.push_back(static_cast<uint32_t>(a.finish));
  return bits;
}

// `grammars`, if requests have constraints, must outlive the engine.
inline std::unique_ptr<EngineLoop> make_engine(const Condition& c, test::TestModel& model,
                                               grammar::GrammarStore* grammars = nullptr) {
  auto executor = runner::LocalExecutor::create(model.model(), {.num_slots = c.num_slots,
                                                                .num_blocks = c.num_blocks,
                                                                .asynchronous = c.asynchronous,
                                                                .max_draft = c.max_draft,
                                                                .grammars = grammars});
  EngineLoopOptions o;
  if (grammars != nullptr) {
    o.compile = [grammars](const Constraint& constraint) -> Result<GrammarHandle> {
      FATHOM_ASSIGN(auto grammar, grammars->acquire(constraint));
      return GrammarHandle{.id = grammar->id, .keep = grammar};
    };
  }
  o.vocab_size = model.config().vocab_size;
  o.hidden_size = model.config().hidden_size;
  o.asynchronous = c.asynchronous;
  o.now_s = [] { return 0.0; };
  o.scheduler.num_slots = c.num_slots;
  o.scheduler.num_blocks = c.num_blocks;
  o.scheduler.block_tokens = model.model().kv_layout().block_tokens();
  o.scheduler.step_tokens = c.step_tokens;
  o.scheduler.window = model.config().sliding_window;
  o.scheduler.max_context = model.config().max_position_embeddings;
  o.scheduler.eos_token = model.config().eos_token_id;
  o.scheduler.resume_every = c.resume_every;
  o.scheduler.resume_budget_bytes = c.resume_budget_bytes;
  o.scheduler.prefix_cache = c.prefix_cache;
  o.scheduler.replay_windows = c.replay_windows;
  o.scheduler.max_draft = c.max_draft;
  o.scheduler.draft_verify = c.sizes_drafts ? DraftVerify::kConfidence : DraftVerify::kFixed;
  return std::make_unique<EngineLoop>(o, *std::move(executor));
}

}  // namespace fathom::engine
