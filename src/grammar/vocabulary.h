// The tokens that grammars speak of, by id.
//
// Thread: any; immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fathom/status.h"

namespace xgrammar {
class TokenizerInfo;
}

namespace fathom::grammar {

class Vocabulary {
 public:
  // `tokens`: the bytes of each id (not UTF-8 in general); empty: never allowed (control tokens,
  // ids without a token).  Ids from tokens.size() to vocab_size likewise.  `end_token` ends an
  // answer. About 60 ms and 20 MB for 129,280 tokens.
  static Result<std::shared_ptr<const Vocabulary>> create(const std::vector<std::string>& tokens,
                                                          int32_t vocab_size, int32_t end_token);
  ~Vocabulary();

  int32_t size() const { return size_; }
  int32_t end_token() const { return end_token_; }
  int32_t max_token_bytes() const { return max_token_bytes_; }  // the longest token
  // Words of a mask: bit i % 32 of word i / 32 is token i.
  size_t mask_words() const { return (static_cast<size_t>(size_) + 31) / 32; }

  // Tokens of one character of ASCII, without white space and the end token: those that JSON is
  // built of, then the others, mixed.
  const std::vector<int32_t>& characters() const { return characters_; }
  // Tokens of one character of white space in JSON, the most frequent one first.
  const std::vector<int32_t>& blanks() const { return blanks_; }

  const xgrammar::TokenizerInfo& info() const { return *info_; }  // for this folder

 private:
  Vocabulary();

  std::unique_ptr<xgrammar::TokenizerInfo> info_;
  int32_t size_ = 0;
  int32_t end_token_ = 0;
  int32_t max_token_bytes_ = 0;
  std::vector<int32_t> characters_, blanks_;
};

}  // namespace fathom::grammar
