// The states within a block of tool calls.
#include <algorithm>

#include "codec/output/dsml_tags.h"
#include "codec/output/output_parser.h"

namespace fathom::codec {

void OutputParser::open_call() {
  in_call_ = true;
  has_parameters_ = false;
  const auto tool = options_.tool_parameters.find(name_);
  arguments_.begin_call(tool != options_.tool_parameters.end() ? &tool->second : nullptr);
  if (!options_.parsing.parse_tool_calls) return;
  ++num_calls_;
  OutputPiece piece;
  piece.kind = OutputPiece::Kind::kCallBegin;
  piece.text = name_;
  out_->push_back(std::move(piece));
}

void OutputParser::emit_arguments() {
  if (arguments_out_.empty()) return;
  if (options_.parsing.parse_tool_calls) {
    OutputPiece piece;
    piece.kind = OutputPiece::Kind::kArguments;
    piece.text = arguments_out_;
    out_->push_back(std::move(piece));
  }
  arguments_out_.clear();
}

void OutputParser::close_call(bool complete) {
  arguments_.end_call(&arguments_out_);
  emit_arguments();
  in_call_ = false;
  if (!options_.parsing.parse_tool_calls) return;
  OutputPiece piece;
  piece.kind = OutputPiece::Kind::kCallEnd;
  piece.complete = complete;
  out_->push_back(std::move(piece));
}

void OutputParser::leave_call(State next) {
  close_call(true);
  const bool is_last = options_.parsing.single_call && options_.parsing.parse_tool_calls;
  enter(is_last ? State::kFinished : next);
}

// Text comes where only calls should be.  White space before it is no part of the answer.
bool OutputParser::answer_follows_block() {
  enter(after_block_, true);
  leading_space_ = true;
  return true;
}

bool OutputParser::step_block() {
  size_t spaces = 0;
  while (spaces < pending().size() && is_json_space(pending()[spaces])) ++spaces;
  consume(spaces);
  const std::string_view text = pending();
  if (text.empty()) return false;
  DsmlTag tag;
  const Found found = read_dsml_tag(text, &tag);
  if (found == Found::kYes && tag.closing) {
    size_t end = tag.end;
    if (read_tag_end(text, tag.end, &end) == Found::kMore) {
      if (at_end_) consume(text.size());
      return false;
    }
    consume(end);  // even one too many
    return true;
  }
  if (found == Found::kYes && tag.word == "invoke") {
    size_t name_begin = 0;
    const Found named = read_name_attribute(text, tag.end, &name_begin);
    if (named == Found::kNo) return answer_follows_block();
    if (named == Found::kMore) {
      if (at_end_) consume(text.size());
      return false;
    }
    consume(name_begin);
    enter(State::kName);
    return true;
  }
  if (found == Found::kYes) {  // the block, or another one, is opened once more
    CallOpening opening;
    const Found opened = read_call_opening(text, &opening);
    if (opened == Found::kMore && !at_end_) return false;
    if (opened != Found::kYes) return answer_follows_block();
    consume(opening.name_begin);
    enter(State::kName);
    return true;
  }
  if (found == Found::kMore) {
    if (!at_end_) return false;
    if (tag.marker_end == 0) return answer_follows_block();
    consume(text.size());
    return false;
  }
  if (text[0] != '<') return answer_follows_block();
  const MarkMatch match = match_mark(text);
  if (match.mark == Mark::kMore) return false;
  if (match.mark != Mark::kThinkEnd && match.mark != Mark::kSentenceMark) {
    return answer_follows_block();
  }
  if (match.mark == Mark::kThinkEnd && after_block_ == State::kReasoning) {
    return answer_follows_block();  // the reasoning takes the tag
  }
  consume(match.end);
  return true;
}

// Up to the quote that ends it.
bool OutputParser::take_name() {
  const size_t quote = pending().find('"', scanned_);
  if (quote == std::string_view::npos) {
    scanned_ = pending().size();
    return false;
  }
  name_ = pending().substr(0, quote);
  consume(quote + 1);
  return true;
}

bool OutputParser::step_name() {
  if (!take_name()) return false;
  open_call();
  enter(State::kNameTail);
  return true;
}

bool OutputParser::step_name_tail() {
  const size_t at = pending().find_first_of("<>");
  if (at == std::string_view::npos) {
    consume(pending().size());
    return false;
  }
  consume(pending()[at] == '>' ? at + 1 : at);
  enter(State::kArguments);
  return true;
}

bool OutputParser::step_arguments() {
  size_t spaces = 0;
  while (spaces < pending().size() && is_json_space(pending()[spaces])) ++spaces;
  consume(spaces);
  const std::string_view text = pending();
  if (text.empty()) return false;
  DsmlTag tag;
  Found found = read_dsml_tag(text, &tag);
  if (found == Found::kMore && !at_end_) return false;
  if (found == Found::kMore && tag.marker_end > 0) {
    // The output ends within a tag.
    if (tag.closing) {
      leave_call(State::kBlock);
    }
    consume(text.size());
    return false;
  }
  if (found == Found::kYes && tag.closing) {
    size_t end = tag.end;
    const Found ended = read_tag_end(text, tag.end, &end);
    if (ended == Found::kMore && !at_end_) return false;
    if (ended == Found::kMore) end = text.size();
    return close_tag_in_arguments(tag.word, end);
  }
  if (found == Found::kYes && (tag.word == "parameter" || tag.word == "invoke")) {
    size_t name_begin = 0;
    const Found named = read_name_attribute(text, tag.end, &name_begin);
    if (named == Found::kMore) {
      if (at_end_) consume(text.size());
      return false;
    }
    const bool is_call = tag.word == "invoke";
    consume(named == Found::kYes ? name_begin : tag.end);
    if (named == Found::kNo) return true;
    if (is_call) {
      leave_call(State::kName);  // its closing tag was forgotten
    } else {
      enter(State::kParameterName);
    }
    return true;
  }
  if (!has_parameters_) {
    value_.clear();
    enter(State::kBody);
    return true;
  }
  consume(std::min(text.find('<', 1), text.size()));
  return true;
}

bool OutputParser::close_tag_in_arguments(std::string_view word, size_t end) {
  const bool ends_call = word != "parameter";
  consume(end);
  if (!ends_call) return true;
  leave_call(State::kBlock);
  return true;
}

bool OutputParser::step_body() {
  const std::string_view text = pending();
  size_t at = scanned_;
  while ((at = text.find('<', at)) != std::string_view::npos) {
    DsmlTag tag;
    const Found found = read_dsml_tag(text.substr(at), &tag);
    if (found == Found::kYes || tag.marker_end > 0) {
      arguments_.body(text.substr(0, at));
      consume(at);
      has_parameters_ = true;
      enter(State::kArguments);
      return true;
    }
    if (found == Found::kMore && !at_end_) {
      scanned_ = at;
      return false;
    }
    ++at;
  }
  scanned_ = text.size();
  if (!at_end_) return false;
  value_ = text;
  consume(text.size());
  return false;
}

bool OutputParser::step_parameter_name() {
  if (!take_name()) return false;
  enter(State::kParameterType);
  return true;
}

bool OutputParser::step_parameter_type() {
  const std::string_view text = pending();
  const size_t at = text.find_first_of("<>", scanned_);
  if (at == std::string_view::npos) {
    scanned_ = text.size();
    return false;
  }
  // Whatever else is said, or nothing: a string, which can hold any text.
  const bool is_string = text.substr(0, at).find("false") == std::string_view::npos;
  consume(text[at] == '>' ? at + 1 : at);
  begin_value(is_string);
  return true;
}

void OutputParser::begin_value(bool is_string) {
  has_parameters_ = true;
  value_is_string_ = is_string;
  value_.clear();
  arguments_.begin_parameter(name_, &arguments_out_);
  if (is_string) arguments_.begin_string(&arguments_out_);
  enter(is_string ? State::kString : State::kJsonValue);
}

bool OutputParser::step_value() {
  const std::string_view text = pending();
  size_t at = 0;
  ValueClosing closing;
  Found found = Found::kNo;
  while ((at = std::min(text.find('<', at), text.size())) < text.size()) {
    found = read_value_closing(text.substr(at), at_end_, &closing);
    if (found == Found::kYes || (found == Found::kMore && !at_end_)) break;
    ++at;
  }
  const std::string_view value = text.substr(0, at);
  if (value_is_string_) {
    arguments_.string_piece(value, &arguments_out_);
  } else {
    value_.append(value);
  }
  const bool closed = at < text.size() && found == Found::kYes;
  consume(closed ? at + closing.end : at);
  if (!closed) return false;
  if (value_is_string_) {
    arguments_.end_string(&arguments_out_);
  } else {
    arguments_.json_value(value_, &arguments_out_);
  }
  if (closing.level == ValueClosing::Level::kParameter) {
    enter(State::kArguments);
    return true;
  }
  leave_call(State::kBlock);
  return true;
}

}  // namespace fathom::codec
