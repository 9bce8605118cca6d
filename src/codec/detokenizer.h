// Text of a stream of tokens, piece by piece, without ever showing half a character.
#pragma once

#include <cstdint>
#include <string>

#include "codec/tokenizer.h"

namespace fathom::codec {

// The pieces of all push() and the flush() joined are decode() of all the ids.  Thread: one;
// borrows the tokenizer.
class Detokenizer {
 public:
  // With `skip_special`, special tokens have no text; a parser of the model's output needs to see
  // them.
  explicit Detokenizer(const Tokenizer& tokenizer, bool skip_special = false)
      : tokenizer_(tokenizer), skip_special_(skip_special) {}

  // The text that is settled once `id` follows the tokens before: valid UTF-8, empty while the
  // bytes so far end within a character.  At most 3 bytes are held back.
  std::string push(int32_t id);
  // The end of the stream: what was held back, as one U+FFFD, if anything was.  Ready for another
  // stream.
  std::string flush();

 private:
  const Tokenizer& tokenizer_;
  bool skip_special_;
  std::string held_;
};

}  // namespace fathom::codec
