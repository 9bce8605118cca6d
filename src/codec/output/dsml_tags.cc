#include "codec/output/dsml_tags.h"

#include <algorithm>

namespace fathom::codec {
namespace {

constexpr std::string_view kFullWidthBar = "｜";
constexpr size_t kMaxBars = 2;
constexpr size_t kMaxWordBytes = 24;
constexpr size_t kMaxTailBytes = 32;   // between the word of a closing tag and its ">"
constexpr size_t kMaxSpaceBytes = 64;  // between two tags

bool is_word_byte(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
}

// Reads `literal` at text[*pos] and moves there.
Found read_literal(std::string_view text, std::string_view literal, size_t* pos) {
  const std::string_view rest = text.substr(*pos);
  const size_t n = std::min(rest.size(), literal.size());
  if (rest.substr(0, n) != literal.substr(0, n)) return Found::kNo;
  if (n < literal.size()) return Found::kMore;
  *pos += n;
  return Found::kYes;
}

// One or two bars of either kind.
Found read_bars(std::string_view text, size_t* pos) {
  size_t bars = 0;
  while (bars < kMaxBars) {
    Found found = read_literal(text, "|", pos);
    if (found == Found::kNo) found = read_literal(text, kFullWidthBar, pos);
    if (found == Found::kMore) return Found::kMore;
    if (found == Found::kNo) break;
    ++bars;
  }
  return bars > 0 ? Found::kYes : Found::kNo;
}

// At most `limit` bytes of white space; kMore if the text ends there.
Found skip_space(std::string_view text, size_t limit, size_t* pos) {
  size_t n = 0;
  while (*pos < text.size() && is_json_space(text[*pos])) {
    if (++n > limit) return Found::kNo;
    ++*pos;
  }
  return *pos == text.size() ? Found::kMore : Found::kYes;
}

}  // namespace

bool is_json_space(char byte) {
  return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
}

Found read_dsml_tag(std::string_view text, DsmlTag* tag) {
  *tag = {};
  size_t pos = 0;
  if (Found found = read_literal(text, "<", &pos); found != Found::kYes) return found;
  if (pos == text.size()) return Found::kMore;
  if (text[pos] == '/') {
    tag->closing = true;
    ++pos;
  }
  if (Found found = read_bars(text, &pos); found != Found::kYes) return found;
  if (Found found = read_literal(text, "DSML", &pos); found != Found::kYes) return found;
  // After one bar the tag is known; only the second bar or the word may be missing.
  size_t one_bar = pos;
  if (Found found = read_literal(text, "|", &one_bar);
      found == Found::kYes || read_literal(text, kFullWidthBar, &one_bar) == Found::kYes) {
    tag->marker_end = one_bar;
  }
  if (Found found = read_bars(text, &pos); found != Found::kYes) return found;
  tag->marker_end = pos;
  if (Found found = skip_space(text, kMaxSpaceBytes, &pos); found != Found::kYes) return found;
  const size_t begin = pos;
  while (pos < text.size() && is_word_byte(text[pos])) {
    if (pos - begin == kMaxWordBytes) return Found::kNo;
    ++pos;
  }
  if (pos == text.size()) return Found::kMore;
  tag->word = text.substr(begin, pos - begin);
  tag->end = pos;
  return Found::kYes;
}

Found read_name_attribute(std::string_view text, size_t pos, size_t* begin) {
  const size_t before = pos;
  if (Found found = skip_space(text, kMaxSpaceBytes, &pos); found != Found::kYes) return found;
  if (pos == before) return Found::kNo;
  if (Found found = read_literal(text, "name=\"", &pos); found != Found::kYes) return found;
  *begin = pos;
  return Found::kYes;
}

Found read_tag_end(std::string_view text, size_t pos, size_t* end) {
  bool only_space = true;
  for (size_t n = 0; n <= kMaxTailBytes; ++n, ++pos) {
    if (pos == text.size()) return Found::kMore;
    if (text[pos] == '>') {
      *end = pos + 1;
      return Found::kYes;
    }
    if (text[pos] == '\n' || text[pos] == '<') {
      if (!only_space) return Found::kNo;
      *end = pos;
      return Found::kYes;
    }
    only_space &= is_json_space(text[pos]);
  }
  return Found::kNo;
}

Found read_call_opening(std::string_view text, CallOpening* opening) {
  *opening = {};
  DsmlTag tag;
  Found found = read_dsml_tag(text, &tag);
  opening->marker_end = tag.marker_end;
  if (found != Found::kYes || tag.closing) return tag.closing ? Found::kNo : found;
  if (tag.word == "invoke") return read_name_attribute(text, tag.end, &opening->name_begin);
  size_t pos = tag.end;
  if (found = read_literal(text, ">", &pos); found != Found::kYes) return found;
  if (found = skip_space(text, kMaxSpaceBytes, &pos); found != Found::kYes) return found;
  found = read_dsml_tag(text.substr(pos), &tag);
  if (found != Found::kYes) return found;
  if (tag.closing || tag.word != "invoke") return Found::kNo;
  return read_name_attribute(text, pos + tag.end, &opening->name_begin);
}

Found read_value_closing(std::string_view text, bool at_end, ValueClosing* closing) {
  *closing = {};
  DsmlTag tag;
  Found found = read_dsml_tag(text, &tag);
  if (found == Found::kYes && !tag.closing) return Found::kNo;
  if (found == Found::kYes) found = read_tag_end(text, tag.end, &closing->end);
  if (found == Found::kMore && at_end && tag.closing && tag.marker_end > 0) {
    closing->end = text.size();  // the output ends within the tag
    return Found::kYes;
  }
  if (found != Found::kYes) return found;
  const bool is_known =
      tag.word == "parameter" || tag.word == "invoke" || tag.word.ends_with("calls");
  if (!is_known && text[closing->end - 1] != '>') return Found::kNo;
  if (tag.word == "invoke") closing->level = ValueClosing::Level::kInvoke;
  if (tag.word.ends_with("calls")) closing->level = ValueClosing::Level::kBlock;

  size_t pos = closing->end;
  if (pos == text.size()) return at_end ? Found::kYes : Found::kMore;
  if (closing->level == ValueClosing::Level::kParameter) {
    return is_json_space(text[pos]) || text[pos] == '<' ? Found::kYes : Found::kNo;
  }
  // The tag of the parameter was forgotten, or this one is quoted in the value.
  found = skip_space(text, kMaxSpaceBytes, &pos);
  if (found == Found::kMore) return at_end ? Found::kYes : Found::kMore;
  if (found == Found::kNo || text[pos] != '<') return Found::kNo;
  const bool ends_block = closing->level == ValueClosing::Level::kBlock;
  found = read_dsml_tag(text.substr(pos), &tag);
  if (found == Found::kMore && !at_end) return Found::kMore;
  if (found != Found::kYes) return ends_block || tag.marker_end > 0 ? Found::kYes : Found::kNo;
  // A closing tag of something within would have come before.
  const bool is_quoted =
      tag.closing && (tag.word == "parameter" || (ends_block && tag.word == "invoke"));
  return is_quoted ? Found::kNo : Found::kYes;
}

}  // namespace fathom::codec
