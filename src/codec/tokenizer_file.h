// Reads tokenizer.json (the format of the `tokenizers` package) into plain values, or says what in
// it is damaged or beyond us.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codec/bpe.h"
#include "codec/pre_tokenizer.h"
#include "codec/tokenizer_added.h"
#include "fathom/status.h"

namespace fathom::codec {

struct TokenizerFile {
  struct Token {
    std::string content;  // as the file spells it
    int32_t id;
  };
  std::vector<Token> vocab;              // base tokens: all contents and all ids different
  std::vector<BpeModel::Merge> merges;   // by rank
  std::array<int32_t, 256> byte_tokens;  // kNoToken only for bytes that no UTF-8 text has
  bool ignore_merges = false;            // a piece that is a token is that token
  std::vector<AddedToken> added;         // contents and ids different, also from other base tokens
  PreTokenizer pre_tokenizer;
};

// Ids of a hostile file must not make us allocate without bound.
inline constexpr int32_t kMaxTokenId = (1 << 22) - 1;

// Errors name the place as a path within the JSON ("model.merges[7]"), not the file: kDataLoss for
// what no tokenizer.json may hold, kUnimplemented for what this project does not interpret.
Result<TokenizerFile> read_tokenizer_file(std::string_view json);

}  // namespace fathom::codec
