#include "grammar/vocabulary.h"

#include <xgrammar/tokenizer_info.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "grammar/xgrammar_calls.h"

namespace fathom::grammar {
namespace {

constexpr std::string_view kBlanks = " \n\t\r";

// The tokens that are just one of `characters`, in that order.
std::vector<int32_t> tokens_of(std::string_view characters,
                               const std::vector<std::string>& tokens) {
  std::vector<int32_t> of_byte(256, -1), out;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].size() == 1)
      of_byte[static_cast<uint8_t>(tokens[id][0])] = static_cast<int32_t>(id);
  }
  for (const char c : characters) out.push_back(of_byte[static_cast<uint8_t>(c)]);
  std::erase(out, -1);
  return out;
}

// Those that JSON is built of come first.  An odd factor permutes the others, so that neighbours in
// the list are of different classes.
std::string ascii_characters() {
  constexpr int kNumAscii = 128;
  std::string out = "\"\\,:{}[]";
  for (int i = 0; i < kNumAscii; ++i) {
    const auto c = static_cast<char>(i * 37 % kNumAscii);
    if (kBlanks.find(c) == std::string_view::npos && out.find(c) == std::string::npos) out += c;
  }
  return out;
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
  out->characters_ = tokens_of(ascii_characters(), tokens);
  std::erase(out->characters_, end_token);
  out->blanks_ = tokens_of(kBlanks, tokens);
  FATHOM_TRY(guarded("vocabulary", [&] {
    out->info_ = std::make_unique<xgrammar::TokenizerInfo>(
        tokens, xgrammar::VocabType::RAW, vocab_size, std::vector<int32_t>{end_token});
  }));
  return std::shared_ptr<const Vocabulary>(std::move(out));
}

}  // namespace fathom::grammar
