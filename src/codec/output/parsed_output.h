// The events of an answer put together again: what it says when all is said.
//
// Thread: one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codec/output/output_stream.h"

namespace fathom::codec {

struct ParsedCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON object
  bool complete = true;   // false: the output ended within the call
  bool operator==(const ParsedCall&) const = default;
};

struct ParsedOutput {
  std::string reasoning;
  std::string content;
  std::vector<ParsedCall> calls;
  FinishReason reason = FinishReason::kEndOfStream;
  std::optional<std::string> stop_sequence;
  OutputUsage usage;

  void add(const OutputEvent& event);
};

// Reads a whole output in one go.
ParsedOutput parse_output(std::string_view text, const OutputStream::Options& options,
                          FinishReason engine_reason);

}  // namespace fathom::codec
