#include "grammar/vocabulary.h"

#include <xgrammar/tokenizer_info.h>

#include <algorithm>

#include "base/check.h"
#include "grammar/xgrammar_calls.h"

namespace fathom::grammar {

Vocabulary::Vocabulary() = default;
Vocabulary::~Vocabulary() = default;

Result<std::shared_ptr<const Vocabulary>> Vocabulary::create(const std::vector<std::string>& tokens,
                                                             int32_t vocab_size,
                                                             int32_t end_token) {
  FATHOM_CHECK(vocab_size >= 1 && tokens.size() <= static_cast<size_t>(vocab_size) &&
               end_token >= 0 && static_cast<size_t>(end_token) < tokens.size())
      << tokens.size() << ' ' << vocab_size << ' ' << end_token;
  std::shared_ptr<Vocabulary> out(new Vocabulary);
  out->size_ = vocab_size;
  out->end_token_ = end_token;
  for (const std::string& token : tokens) {
    out->max_token_bytes_ = std::max(out->max_token_bytes_, static_cast<int32_t>(token.size()));
  }
  FATHOM_TRY(guarded("vocabulary", [&] {
    out->info_ = std::make_unique<xgrammar::TokenizerInfo>(
        tokens, xgrammar::VocabType::RAW, vocab_size, std::vector<int32_t>{end_token});
  }));
  return std::shared_ptr<const Vocabulary>(std::move(out));
}

}  // namespace fathom::grammar
