// From what a user asks, on the command line or in a line of JSON, to a request of token ids.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "answer.h"
#include "codec/request.h"
#include "engine.h"
#include "options.h"

namespace fathom::app {

// One question with its parameters, before the model has a say.
struct Question {
  enum class Kind {
    kTurn,      // `prompt` is one user turn
    kRaw,       // `prompt` is rendered already: control tokens count, nothing is added
    kMessages,  // a conversation
    kIds,
  };
  std::string id_json = "\"0\"";  // as JSON; copied to the result
  Kind kind = Kind::kTurn;
  std::string prompt;
  // kMessages: thinking and effort are those of `sampling`.  `stream`: the answer is shown as it
  // comes.
  codec::ConversationRequest chat;
  std::vector<int32_t> prompt_ids;
  SamplingOptions sampling;
  ImageOptions images;
};

// A question as the engine takes it.
struct PreparedQuestion {
  Request request;  // params.seed is set if the user gave one
  AnswerForm form;
};

// What is set in `first`, else what is set in `second`.
SamplingOptions merge(const SamplingOptions& first, const SamplingOptions& second);

// The question of `generate` without --jsonl: reads its file or standard input.
Result<Question> read_question(const GenerateOptions& options);

// One line of --jsonl.  `defaults` counts where the line says nothing.  After an error `*out` has
// the id, if the line had one.
Status parse_question(std::string_view line, int64_t line_number, const GenerateOptions& defaults,
                      Question* out);

// The tools of a file, which holds the field of a Chat Completions body.
Result<std::vector<codec::ToolDefinition>> read_tools(const std::string& file);

// "1,2,3"
Result<std::vector<int32_t>> parse_ids(std::string_view text);

// Renders, encodes, and resolves the limits.
Result<PreparedQuestion> prepare(const Engine& engine, const Question& question);

}  // namespace fathom::app
