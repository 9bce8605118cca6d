// What the tests of grammars share: the demo model's vocabulary, and random text under a
// constraint.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "codec/engine_constraint.h"
#include "codec/tokenizer.h"
#include "grammar/grammar_store.h"
#include "grammar/guide.h"
#include "sampler/sampler.h"

namespace fathom::grammar {

inline std::unique_ptr<codec::Tokenizer> load_tokenizer(const std::filesystem::path& file) {
  Result<std::unique_ptr<codec::Tokenizer>> tokenizer = codec::Tokenizer::load(file);
  FATHOM_CHECK(tokenizer.has_value()) << tokenizer.error().message();
  return std::move(tokenizer).value();
}

inline std::unique_ptr<codec::Tokenizer> demo_tokenizer() {
  return load_tokenizer(std::filesystem::path(FATHOM_SOURCE_DIR) / "models/demo/tokenizer.json");
}

inline constexpr int32_t kEndToken = 1;

inline std::unique_ptr<GrammarStore> make_store(const codec::Tokenizer& tokenizer,
                                                const GrammarStoreOptions& options = {}) {
  return std::make_unique<GrammarStore>(
      [&tokenizer] { return codec::constraint_tokens(tokenizer); }, tokenizer.vocab_size(),
      kEndToken, options);
}

inline Constraint make_constraint(Constraint::Kind kind, std::string text) {
  Constraint constraint;
  constraint.kind = kind;
  constraint.text = std::move(text);
  return constraint;
}

// Draws answers from logits that are noise, with a pull towards the end that grows with the length,
// so that most answers come to one.
class RandomWriter {
 public:
  explicit RandomWriter(const codec::Tokenizer& tokenizer)
      : tokenizer_(tokenizer),
        sampler_(tokenizer.vocab_size()),
        logits_(static_cast<size_t>(tokenizer.vocab_size())),
        closes_(logits_.size()) {
    for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
      const std::string_view bytes = tokenizer.token_bytes(id);
      const bool closes =
          bytes.size() <= 2 && bytes.find_first_of("\"}]<") != std::string_view::npos;
      closes_[static_cast<size_t>(id)] = closes || id == kEndToken;
    }
  }

  struct Answer {
    std::vector<int32_t> tokens;  // without the end token
    std::string text;
    bool finished = false;
    Status error;
  };

  Answer write(std::shared_ptr<const CompiledGrammar> grammar, uint64_t seed, float temperature,
               int max_tokens) {
    Answer answer;
    Result<std::unique_ptr<Guide>> guide = Guide::create(std::move(grammar));
    if (!guide) {
      answer.error = std::move(guide).error();
      return answer;
    }
    SamplingParams params;
    params.temperature = temperature;
    while (static_cast<int>(answer.tokens.size()) < max_tokens) {
      const auto position = static_cast<int64_t>(answer.tokens.size());
      (*guide)->fill();
      answer.error = (*guide)->status();
      if (!answer.error.ok()) return answer;
      draw_logits(seed, position);
      const Result<sampler::Sample> sample =
          sampler_.sample(logits_, params, seed, position, {}, (*guide)->mask());
      if (!sample) {
        answer.error = sample.error();
        return answer;
      }
      answer.error = (*guide)->accept(sample->id);
      if (!answer.error.ok()) return answer;
      if ((*guide)->ended()) {
        answer.finished = true;
        break;
      }
      answer.tokens.push_back(sample->id);
    }
    answer.text = tokenizer_.decode(answer.tokens, /*skip_special=*/true);
    return answer;
  }

 private:
  void draw_logits(uint64_t seed, int64_t position) {
    const float pull = std::min(12.0f, 0.15f * static_cast<float>(position));
    for (size_t i = 0; i < logits_.size(); ++i) {
      const uint64_t bits = sampler::noise_bits(
          seed ^ 0x5eed, position, sampler::Purpose::kDraftAccept, static_cast<int64_t>(i));
      const float noise = static_cast<float>(bits >> 40) * 0x1p-24f;
      logits_[i] = 8 * noise + (closes_[i] ? 2 + pull : 0);
    }
  }

  const codec::Tokenizer& tokenizer_;
  sampler::Sampler sampler_;
  std::vector<float> logits_;
  std::vector<bool> closes_;
};

}  // namespace fathom::grammar
