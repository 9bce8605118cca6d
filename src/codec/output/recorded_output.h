// The output of a model in a file: what `fathom parse` reads, and the recorded vectors.
//
// Thread: any; pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codec/json_value.h"
#include "codec/output/output_stream.h"
#include "codec/output/parsed_output.h"
#include "fathom/status.h"

namespace fathom::codec {

// One thing that an engine said.
struct RecordedChunk {
  enum class Kind { kReady, kText, kTokens, kFinish };
  Kind kind = Kind::kText;
  uint64_t prompt_tokens = 0;                 // kReady
  uint64_t prompt_cache_hit_tokens = 0;       // kReady
  std::optional<std::string> fingerprint;     // kReady
  std::string text;                           // kText
  uint64_t num_tokens = 0;                    // kText
  std::vector<int32_t> ids;                   // kTokens
  std::vector<SampledLogprob> logprobs;       // kTokens: none, or one an id
  FinishReason reason = FinishReason::kStop;  // kFinish
};

// Reads {"chunks": [...]}, or {"text": "..."} or {"ids": [...]} with "finish_reason" ("stop" if it
// is not there).  A chunk is an object with "kind":
//   ready   prompt_tokens, prompt_cache_hit_tokens, system_fingerprint
//   text    content, content_tokens
//   tokens  ids, logprobs ([logprob, [[id, logprob], ...]] an id)
//   finish  finish_reason: stop, length, content_filter
// Error (kInvalidArgument): anything else, with the place.
Result<std::vector<RecordedChunk>> read_recorded_output(const JsonValue& object);

// Reads parse_tool_calls, starts_in_tool_calls, parse_json_output, thinking_initial_stage (null,
// "reasoning_start", "reasoning_continuation", "content_continuation") and stop_sequences; what is
// not there keeps its default.  Error (kInvalidArgument): a value of another type.
Result<ParsingOptions> read_parsing_options(const JsonValue& object);

// Pushes all chunks; without a finish chunk the stream just ends.
Status replay(const std::vector<RecordedChunk>& chunks, OutputStream* stream,
              std::vector<OutputEvent>* events);

// {reasoning, content, tool_calls: [{name, arguments}], finish, stop_sequence, completion_tokens};
// "finish" of a stream that just ended is "stop".
JsonObject parsed_output_json(const ParsedOutput& output);

}  // namespace fathom::codec
