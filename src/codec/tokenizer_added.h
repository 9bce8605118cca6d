// Added tokens: strings that become one id wherever they stand in a text, before BPE sees it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codec/split_regex_chars.h"

namespace fathom::codec {

// The flags are those of tokenizer.json.
struct AddedToken {
  int32_t id = 0;
  std::string content;       // valid UTF-8, 1 to kMaxAddedTokenBytes bytes
  bool special = false;      // left out by decode(..., skip_special)
  bool normalized = false;   // looked for after all that are not
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool single_word = false;  // only where no word character touches it
};

inline constexpr size_t kMaxAddedTokenBytes = 1024;

// Thread: any; immutable.
class AddedTokens {
 public:
  static constexpr int32_t kText = -1;
  struct Segment {
    std::string_view text;  // into the text given to split(); empty for a token
    int32_t id;             // kText, or that of an added token
  };

  // Contents must be all different.
  explicit AddedTokens(const std::vector<AddedToken>& tokens);

  // Cuts a valid UTF-8 text at the added tokens: leftmost first, the longest of those that begin
  // there.
  std::vector<Segment> split(std::string_view text) const;

 private:
  // The tokens of one value of `normalized`, sorted by content.
  struct Group {
    std::vector<AddedToken> tokens;
    std::array<bool, 256> can_begin{};

    const AddedToken* longest_at(std::string_view text) const;
  };

  void split_by(const Group& group, std::string_view text, std::vector<Segment>* out) const;
  bool touches_word(std::string_view before, std::string_view after) const;

  Group raw_;
  Group normalized_;
  CharSet word_;
  CharSet space_;
};

}  // namespace fathom::codec
