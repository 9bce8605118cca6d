// Splits the output of the model into reasoning, answer and tool calls, while it is being written.
//
// The grammar is that of recipe.md 4.1; what is done with output that breaks it follows 4.9
// and 7.3: nothing of an answer is lost, markup is not shown, and the arguments of calls are valid
// JSON. How the output is cut into pushed texts never changes the joined pieces: a decision is
// taken only on bytes that cannot be read otherwise any more, and text is handed out as soon as
// that is so.
//
// Thread: one; one object an answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/conversation.h"
#include "codec/output/arguments_writer.h"
#include "codec/output/stop_matcher.h"

namespace fathom::codec {

struct OutputPiece {
  enum class Kind {
    kReasoning,
    kText,
    kCallBegin,  // text: the name of the function
    kArguments,  // text: more of the JSON of the arguments of the call that began last
    kCallEnd,
  };
  Kind kind = Kind::kText;
  std::string text;
  // kReasoning, kText: where the text stands in all that was pushed, in bytes.
  uint64_t begin = 0;
  uint64_t end = 0;
  bool complete = true;  // kCallEnd: false if the output ended within the call
};

struct OutputParserOptions {
  ParsingOptions parsing;
  // No tools are offered, but the model may write calls all the same (the history has some): they
  // are left out of the answer.  For parsing.parse_tool_calls == false only.
  bool hide_tool_calls = false;
  ArgumentsWriter::Options arguments;
  // Names of the parameters by name of the tool; tools without properties need not be there.  See
  // ArgumentsWriter::begin_call.
  std::map<std::string, std::vector<std::string>, std::less<>> tool_parameters;
};

class OutputParser {
 public:
  explicit OutputParser(const OutputParserOptions& options);

  // Appends the pieces that are settled by now.  `text` is whole characters of UTF-8.  After
  // finished() everything is dropped.
  void push(std::string_view text, std::vector<OutputPiece>* out);
  // The end of the output.
  void finish(std::vector<OutputPiece>* out);

  // A stop sequence was found, or the only call is complete: no more output is needed.
  bool finished() const { return state_ == State::kFinished; }
  // The stop sequence that ended the answer.  None if calls came before it: the client has to run
  // them.
  const std::optional<std::string>& stop_sequence() const { return stop_sequence_; }
  // Calls that were handed out.
  size_t num_calls() const { return num_calls_; }

 private:
  enum class State {
    kReasoning,
    kAnswer,
    kBeforeJson,  // JSON mode: text before the JSON, which is shown only if no JSON comes
    kJson,
    kAfterJson,  // after the fence: dropped
    kBlock,      // between calls, and after a block until text comes
    kName,
    kNameTail,  // up to the ">" of the invoke tag
    kArguments,
    kParameterName,
    kParameterType,
    kString,
    kJsonValue,
    kBody,
    kFinished,
  };
  // What begins at a "<" of the answer.
  enum class Mark { kNone, kMore, kThinkEnd, kSentenceMark, kCall };
  struct MarkMatch {
    Mark mark = Mark::kNone;
    size_t end = 0;         // bytes to leave out; kCall: up to the name of the call
    size_t marker_end = 0;  // a stop sequence that ends within these bytes wins
  };

  // Each does what can be done in its state.  False: more text is needed (or, at the end, nothing
  // is left).
  bool step();
  bool step_text();
  bool step_before_json();
  bool step_json();
  bool step_after_json();
  bool step_block();
  bool take_name();
  bool step_name();
  bool step_name_tail();
  bool step_arguments();
  bool step_parameter_name();
  bool step_parameter_type();
  bool step_value();
  bool step_body();

  bool drop_leading();
  MarkMatch match_mark(std::string_view text) const;
  bool scan_stops(size_t begin, size_t end);
  bool take_mark(const MarkMatch& match, size_t at);
  void hold_from(size_t at, size_t kept_before);
  bool answer_follows_block();
  void begin_value(bool is_string);
  bool close_tag_in_arguments(std::string_view word, size_t end);

  void enter(State state, bool leading = false);
  void open_call();
  void close_call(bool complete);
  void leave_call(State next);  // it is complete
  std::string_view pending() const { return std::string_view(buffer_).substr(head_); }
  void consume(size_t bytes);
  void emit_text(size_t bytes);  // hands out the first bytes of pending() and consumes them
  void give_back();
  void emit_arguments();
  bool reasoning() const { return state_ == State::kReasoning; }

  OutputParserOptions options_;
  StopMatcher stops_;
  bool calls_matter_;  // calls are parsed, shown or not
  State state_ = State::kAnswer;
  State after_block_ = State::kAnswer;

  std::string buffer_;
  size_t head_ = 0;      // bytes of buffer_ that are done with
  uint64_t offset_ = 0;  // of buffer_[head_] in all that was pushed
  size_t scanned_ = 0;   // bytes of pending() that were looked at and are still undecided
  size_t newlines_ = 0;  // line breaks at the end of those
  bool at_end_ = false;
  bool leading_ = false;        // line breaks are dropped
  bool leading_space_ = false;  // all white space is dropped: after a block
  std::vector<OutputPiece>* out_ = nullptr;

  bool json_in_string_ = false;
  bool json_escaped_ = false;
  bool json_done_ = false;  // the outermost value is closed
  int json_depth_ = 0;
  std::vector<OutputPiece> preface_;  // kBeforeJson: cut out before a </think>

  ArgumentsWriter arguments_;
  std::string arguments_out_;
  bool in_call_ = false;
  bool has_parameters_ = false;
  bool value_is_string_ = false;
  std::string name_;   // of the call or parameter
  std::string value_;  // kJsonValue, kBody, kParameterType
  size_t num_calls_ = 0;
  std::optional<std::string> stop_sequence_;
};

}  // namespace fathom::codec
