// The markup of tool calls in the output of the model ("DSML", recipe.md 4.1), found at the
// beginning of a text that may still grow.
//
// Read generously: V4 and V4.1 words (with and without the space), corrupted block names, ASCII
// bars and doubled bars instead of the full-width ones.  Nothing here looks further than a few
// hundred bytes, so a caller may ask again whenever the text has grown.
//
// Thread: any; pure functions.
#pragma once

#include <cstddef>
#include <string_view>

namespace fathom::codec {

// kMore: the text ends before it can be told.
enum class Found { kNo, kMore, kYes };

// "<", or "</", bars, "DSML", bars, spaces, a word.
struct DsmlTag {
  bool closing = false;
  std::string_view word;  // "invoke", "parameter", "calls", ...; borrowed from the text
  size_t marker_end = 0;  // bytes up to and with the last bar; 0: the bars are not complete
  size_t end = 0;         // bytes up to the end of the word
};

// Reads the tag that `text` begins with.  kMore may leave marker_end set.
Found read_dsml_tag(std::string_view text, DsmlTag* tag);

// Reads ` name="` at text[pos]; `*begin` is where the name begins.
Found read_name_attribute(std::string_view text, size_t pos, size_t* begin);

// Reads what follows the word of a closing tag: up to and with ">", or, if that was forgotten,
// spaces up to a line break or "<".  kNo: other text follows.
Found read_tag_end(std::string_view text, size_t pos, size_t* end);

// A block of calls, or a call without a block, begins at `text`: an opening tag of any word, white
// space and then an invoke tag with a name.
struct CallOpening {
  size_t marker_end = 0;  // of the first tag
  size_t name_begin = 0;
};
Found read_call_opening(std::string_view text, CallOpening* opening);

// A closing tag within the value of a parameter.  It ends the value only if what follows could not
// be text of the value: kNo otherwise.
struct ValueClosing {
  enum class Level { kParameter, kInvoke, kBlock };
  Level level = Level::kParameter;
  size_t end = 0;  // bytes of the tag
};
Found read_value_closing(std::string_view text, bool at_end, ValueClosing* closing);

bool is_json_space(char byte);  // space, \t, \r, \n

}  // namespace fathom::codec
