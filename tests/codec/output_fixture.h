// Running outputs of the model through the parser, cut in all ways.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/output/parsed_output.h"

namespace fathom::codec {

// The markup of V4.1.
inline std::string param(std::string_view name, std::string_view value, bool is_string = true) {
  return "<｜DSML｜ parameter name=\"" + std::string(name) + "\" string=\"" +
         (is_string ? "true" : "false") + "\">" + std::string(value) + "</｜DSML｜ parameter>\n";
}
inline std::string invoke(std::string_view name, std::string_view body) {
  return "<｜DSML｜ invoke name=\"" + std::string(name) + "\">\n" + std::string(body) +
         "</｜DSML｜ invoke>\n";
}
inline std::string block(std::string_view calls) {
  return "<｜DSML｜ calls>\n" + std::string(calls) + "</｜DSML｜ calls>";
}

// A whole answer, so that all arguments are held until their call ends.
inline OutputStream::Options output_options() {
  OutputStream::Options options;
  options.parser.arguments.hold_bytes = std::numeric_limits<size_t>::max();
  return options;
}
inline OutputStream::Options thinking_options() {
  OutputStream::Options options = output_options();
  options.parser.parsing.thinking_initial_stage = ParsingOptions::Stage::kReasoningStart;
  options.thinking = true;
  return options;
}
inline OutputStream::Options json_options() {
  OutputStream::Options options = output_options();
  options.parser.parsing.parse_json_output = true;
  return options;
}

inline ParsedOutput run_pieces(const std::vector<std::string_view>& pieces,
                               const OutputStream::Options& options,
                               FinishReason reason = FinishReason::kStop) {
  OutputStream stream(options, nullptr, CallIds::from_seed(0));
  std::vector<OutputEvent> events;
  for (const std::string_view piece : pieces) stream.push_text(piece, 0, &events);
  stream.finish(reason, &events);
  ParsedOutput output;
  for (const OutputEvent& event : events) output.add(event);
  return output;
}

inline std::vector<std::string_view> bytes_of(std::string_view text) {
  std::vector<std::string_view> pieces;
  for (size_t i = 0; i < text.size(); ++i) pieces.push_back(text.substr(i, 1));
  return pieces;
}

// One line that says all of an output: "R[reasoning] T[content] C[name arguments]... reason".
inline std::string line_of(const ParsedOutput& output) {
  std::string line;
  if (!output.reasoning.empty()) line += "R[" + output.reasoning + "] ";
  if (!output.content.empty()) line += "T[" + output.content + "] ";
  for (const ParsedCall& call : output.calls) {
    line += "C[" + call.name + " " + call.arguments + (call.complete ? "" : " cut") + "] ";
  }
  line += finish_reason_name(output.reason);
  if (output.stop_sequence) line += "[" + *output.stop_sequence + "]";
  return line;
}

// The same for the whole text and for its bytes one by one, which must agree.
inline std::string parsed(std::string_view text, const OutputStream::Options& options,
                          FinishReason reason = FinishReason::kStop) {
  const std::string whole = line_of(run_pieces({text}, options, reason));
  const std::string cut = line_of(run_pieces(bytes_of(text), options, reason));
  return whole == cut ? whole : "whole: " + whole + "; cut: " + cut;
}

}  // namespace fathom::codec
