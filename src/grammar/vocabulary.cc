#include "grammar/vocabulary.h"

#include <xgrammar/tokenizer_info.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "grammar/xgrammar_calls.h"

namespace fathom::grammar {
namespace {

std::vector<int32_t> characters_of(const std::vector<std::string>& tokens) {
  constexpr uint32_t kNumAscii = 128;
  std::vector<int32_t> ascii(kNumAscii, -1), characters;
  for (size_t id = 0; id < tokens.size(); ++id) {
    const std::string& token = tokens[id];
    if (token.empty()) continue;
    const auto first = static_cast<uint8_t>(token[0]);
    // An odd factor permutes, so that neighbours in the list are of different classes.
    if (token.size() == 1 && first < kNumAscii) {
      ascii[first * 37 % kNumAscii] = static_cast<int32_t>(id);
    }
    const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
    if (length == token.size()) characters.push_back(static_cast<int32_t>(id));
  }
  std::erase(ascii, -1);
  characters.insert(characters.begin(), ascii.begin(), ascii.end());
  return characters;
}

}  // namespace

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
  out->characters_ = characters_of(tokens);
  FATHOM_TRY(guarded("vocabulary", [&] {
    out->info_ = std::make_unique<xgrammar::TokenizerInfo>(
        tokens, xgrammar::VocabType::RAW, vocab_size, std::vector<int32_t>{end_token});
  }));
  return std::shared_ptr<const Vocabulary>(std::move(out));
}

}  // namespace fathom::grammar
