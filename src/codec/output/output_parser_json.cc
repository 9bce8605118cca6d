// The states of JSON mode: what surrounds the JSON value is left out, unless there is none.
#include <algorithm>

#include "codec/output/dsml_tags.h"
#include "codec/output/output_parser.h"

namespace fathom::codec {
namespace {

constexpr std::string_view kFence = "```";

// The line that opens a fence, at the beginning of `text`; `*end` gets its length.
Found read_fence(std::string_view text, size_t* end) {
  Found best = Found::kNo;
  for (const std::string_view line : {"```json\n", "```\n"}) {
    if (text.starts_with(line)) {
      *end = line.size();
      return Found::kYes;
    }
    if (line.starts_with(text)) best = Found::kMore;
  }
  return best;
}

}  // namespace

// No JSON came: the text is the answer after all.
void OutputParser::give_back() {
  for (OutputPiece& piece : preface_) out_->push_back(std::move(piece));
  preface_.clear();
}

bool OutputParser::step_before_json() {
  if (!drop_leading()) return false;
  const std::string_view text = pending();
  size_t i = scanned_;
  while ((i = text.find_first_of("<{[`", i)) != std::string_view::npos) {
    size_t end = i;
    Found found = Found::kYes;
    MarkMatch match;
    if (text[i] == '`') found = read_fence(text.substr(i), &end);
    if (text[i] == '<') {
      match = match_mark(text.substr(i));
      found = match.mark == Mark::kNone   ? Found::kNo
              : match.mark == Mark::kMore ? Found::kMore
                                          : Found::kYes;
    }
    if (found == Found::kMore && !at_end_) {
      scanned_ = i;
      return false;
    }
    if (found != Found::kYes) {
      ++i;
      continue;
    }
    if (text[i] == '<' && match.mark == Mark::kCall) {
      give_back();
      newlines_ = i - 1 - text.substr(0, i).find_last_not_of('\n');  // npos + 1 is 0
      stops_.reset();
      return take_mark({match.mark, match.end, 0}, i);
    }
    if (text[i] == '<') {  // a closing tag of the thinking, or a mark that is never shown
      std::vector<OutputPiece>* out = out_;
      out_ = &preface_;
      emit_text(i);
      out_ = out;
      consume(match.end);
      scanned_ = 0;
      return true;
    }
    preface_.clear();
    consume(text[i] == '`' ? i + end : i);
    enter(State::kJson);
    return true;
  }
  scanned_ = text.size();
  if (!at_end_) return false;
  give_back();
  stops_.reset();
  if (!scan_stops(0, text.size())) emit_text(text.size());
  return false;
}

bool OutputParser::step_json() {
  const std::string_view text = pending();
  for (size_t i = scanned_; i < text.size(); ++i) {
    const char byte = text[i];
    if (!json_in_string_ && byte == '<') {
      const MarkMatch match = match_mark(text.substr(i));
      if (match.mark == Mark::kMore) {
        hold_from(i, newlines_);
        return false;
      }
      if (match.mark == Mark::kCall || match.mark == Mark::kSentenceMark) {
        return take_mark(match, i);
      }
    }
    if (!json_in_string_ && byte == '`' && newlines_ > 0) {
      const std::string_view rest = text.substr(i);
      if (rest.starts_with(kFence)) {
        emit_text(i - 1);
        consume(1 + kFence.size());
        enter(State::kAfterJson);
        return true;
      }
      if (!at_end_ && kFence.starts_with(rest)) {
        hold_from(i, newlines_);
        return false;
      }
    }
    if (scan_stops(i, i + 1)) return true;
    newlines_ = byte == '\n' ? newlines_ + 1 : 0;
    if (json_done_) continue;
    if (json_in_string_) {
      if (byte == '"' && !json_escaped_) json_in_string_ = false;
      json_escaped_ = byte == '\\' && !json_escaped_;
    } else if (byte == '"') {
      json_in_string_ = true;
    } else if (byte == '{' || byte == '[') {
      ++json_depth_;
    } else if (byte == '}' || byte == ']') {
      json_done_ = --json_depth_ <= 0;
    }
  }
  hold_from(text.size(), json_in_string_ ? 0 : newlines_);
  return false;
}

bool OutputParser::step_after_json() {
  const size_t at = pending().find('<');
  consume(std::min(at, pending().size()));
  if (pending().empty()) return false;
  const MarkMatch match = match_mark(pending());
  if (match.mark == Mark::kMore) return false;
  if (match.mark == Mark::kCall) {
    consume(match.end);
    after_block_ = State::kAfterJson;
    enter(State::kName);
    return true;
  }
  consume(1);
  return true;
}

}  // namespace fathom::codec
