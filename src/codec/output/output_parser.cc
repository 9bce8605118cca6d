#include "codec/output/output_parser.h"

#include <algorithm>

#include "codec/output/dsml_tags.h"

namespace fathom::codec {
namespace {

// Bytes that are done with and may stay in the buffer.
constexpr size_t kMaxStaleBytes = 4096;

// `literal` at the beginning of `text`.
Found begins_with(std::string_view text, std::string_view literal) {
  if (literal.empty()) return Found::kNo;
  if (text.starts_with(literal)) return Found::kYes;
  return literal.starts_with(text) ? Found::kMore : Found::kNo;
}

}  // namespace

OutputParser::OutputParser(const OutputParserOptions& options)
    : options_(options),
      stops_(options.parsing.stop_sequences),
      calls_matter_(options.parsing.parse_tool_calls || options.hide_tool_calls),
      arguments_(options.arguments) {
  const ParsingOptions& parsing = options_.parsing;
  using Stage = ParsingOptions::Stage;
  const bool json = parsing.parse_json_output || parsing.strip_json_fence;
  const State answer = json ? State::kBeforeJson : State::kAnswer;
  const Stage stage = parsing.thinking_initial_stage;
  after_block_ = answer;
  if (parsing.starts_in_tool_calls) {
    enter(State::kBlock);
  } else if (stage == Stage::kReasoningStart || stage == Stage::kReasoningContinuation) {
    enter(State::kReasoning, stage == Stage::kReasoningStart);
  } else {
    enter(answer, stage == Stage::kNone);
  }
}

void OutputParser::push(std::string_view text, std::vector<OutputPiece>* out) {
  if (finished()) return;
  out_ = out;
  buffer_.append(text);
  while (!finished() && step()) continue;
  emit_arguments();
  if (finished()) consume(pending().size());
  if (head_ == buffer_.size()) {
    buffer_.clear();
    head_ = 0;
  } else if (head_ > kMaxStaleBytes && head_ > buffer_.size() / 2) {
    buffer_.erase(0, head_);
    head_ = 0;
  }
}

void OutputParser::finish(std::vector<OutputPiece>* out) {
  if (finished()) return;
  at_end_ = true;
  push("", out);
  if (finished()) return;
  if (in_call_) {
    if (state_ == State::kString) arguments_.end_string(&arguments_out_);
    if (state_ == State::kJsonValue) arguments_.cut_json_value(value_, &arguments_out_);
    if (state_ == State::kBody) arguments_.cut_body(value_);
    close_call(false);
  }
  state_ = State::kFinished;
}

bool OutputParser::step() {
  switch (state_) {
    case State::kReasoning:
    case State::kAnswer:
      return step_text();
    case State::kBeforeJson:
      return step_before_json();
    case State::kJson:
      return step_json();
    case State::kAfterJson:
      return step_after_json();
    case State::kBlock:
      return step_block();
    case State::kName:
      return step_name();
    case State::kNameTail:
      return step_name_tail();
    case State::kArguments:
      return step_arguments();
    case State::kParameterName:
      return step_parameter_name();
    case State::kParameterType:
      return step_parameter_type();
    case State::kString:
    case State::kJsonValue:
      return step_value();
    case State::kBody:
      return step_body();
    case State::kFinished:
      return false;
  }
  return false;
}

void OutputParser::enter(State state, bool leading) {
  state_ = state;
  leading_ = leading;
  leading_space_ = false;
  scanned_ = 0;
  newlines_ = 0;
  stops_.reset();
}

void OutputParser::consume(size_t bytes) {
  head_ += bytes;
  offset_ += bytes;
}

void OutputParser::emit_text(size_t bytes) {
  if (bytes > 0) {
    OutputPiece piece;
    piece.kind = reasoning() ? OutputPiece::Kind::kReasoning : OutputPiece::Kind::kText;
    piece.text = pending().substr(0, bytes);
    piece.begin = offset_;
    piece.end = offset_ + bytes;
    out_->push_back(std::move(piece));
  }
  consume(bytes);
}

// False: nothing is left.
bool OutputParser::drop_leading() {
  if (!leading_) return true;
  // A stop sequence of one line break is older than the rule that drops it.
  const bool keep = !reasoning() && !leading_space_ && stops_.contains("\n");
  const std::string_view text = pending();
  size_t n = 0;
  while (!keep && n < text.size() &&
         (text[n] == '\n' || (leading_space_ && is_json_space(text[n])))) {
    ++n;
  }
  consume(n);
  if (n == text.size()) return false;
  leading_ = leading_space_ = false;
  return true;
}

bool OutputParser::step_text() {
  if (!drop_leading()) return false;
  const std::string_view text = pending();
  const bool newlines_matter = reasoning() || calls_matter_;
  size_t i = scanned_;
  while (i < text.size()) {
    const size_t at = std::min(text.find('<', i), text.size());
    if (scan_stops(i, at)) return true;
    const size_t last = text.substr(i, at - i).find_last_not_of('\n');
    newlines_ = last == std::string_view::npos ? newlines_ + at - i : at - i - 1 - last;
    i = at;
    if (i == text.size()) break;
    const MarkMatch match = match_mark(text.substr(i));
    if (match.mark == Mark::kMore) {
      hold_from(i, newlines_matter ? newlines_ : 0);
      return false;
    }
    if (match.mark != Mark::kNone) return take_mark(match, i);
    if (scan_stops(i, i + 1)) return true;
    newlines_ = 0;
    ++i;
  }
  hold_from(i, newlines_matter ? newlines_ : 0);
  return false;
}

// Hands out what comes before pending()[at], less what may belong to a mark or a stop sequence that
// ends later.
void OutputParser::hold_from(size_t at, size_t kept_before) {
  if (at_end_) {
    emit_text(pending().size());
    scanned_ = 0;
    return;
  }
  const size_t kept = std::max(kept_before, reasoning() ? 0 : stops_.held());
  emit_text(at - kept);
  scanned_ = kept;
}

OutputParser::MarkMatch OutputParser::match_mark(std::string_view text) const {
  const SpecialTokens& tokens = options_.parsing.special_tokens;
  bool more = false;
  const auto literal = [&](const std::string& spelling) {
    const Found found = begins_with(text, spelling);
    more |= found == Found::kMore;
    return found == Found::kYes;
  };
  if (literal(tokens.think_end)) {
    return {Mark::kThinkEnd, tokens.think_end.size(), tokens.think_end.size()};
  }
  for (const std::string* mark : {&tokens.end_of_sentence, &tokens.begin_of_sentence}) {
    if (literal(*mark)) return {Mark::kSentenceMark, mark->size(), mark->size()};
  }
  if (calls_matter_) {
    CallOpening opening;
    const Found found = read_call_opening(text, &opening);
    if (found == Found::kYes) return {Mark::kCall, opening.name_begin, opening.marker_end};
    more |= found == Found::kMore;
  }
  return {more && !at_end_ ? Mark::kMore : Mark::kNone, 0, 0};
}

// True if a stop sequence ends within these bytes of pending(); then the answer is over.
bool OutputParser::scan_stops(size_t begin, size_t end) {
  if (stops_.empty() || reasoning()) return false;
  const std::string_view text = pending();
  for (size_t i = begin; i < end; ++i) {
    const std::string* stop = stops_.advance(text[i]);
    if (stop == nullptr) continue;
    emit_text(i + 1 - stop->size());
    if (num_calls_ == 0) stop_sequence_ = *stop;
    state_ = State::kFinished;
    return true;
  }
  return false;
}

// Leaves the mark at pending()[at] out of the text.
bool OutputParser::take_mark(const MarkMatch& match, size_t at) {
  if (scan_stops(at, at + match.marker_end)) return true;
  const size_t rest = at + match.end;
  const bool was_reasoning = reasoning();
  const bool swallow =
      match.mark == Mark::kCall || (match.mark == Mark::kThinkEnd && was_reasoning);
  const size_t shown = at - (swallow ? newlines_ : 0);
  emit_text(shown);
  consume(rest - shown);
  if (match.mark == Mark::kCall) {
    after_block_ = state_ == State::kJson ? State::kAfterJson : state_;
    enter(State::kName);
  } else if (match.mark == Mark::kThinkEnd) {
    const ParsingOptions& parsing = options_.parsing;
    const bool json = parsing.parse_json_output || parsing.strip_json_fence;
    enter(was_reasoning && json ? State::kBeforeJson : State::kAnswer, was_reasoning);
  } else {
    scanned_ = newlines_ = 0;
    stops_.reset();
  }
  return true;
}

}  // namespace fathom::codec
