// A conversation and the options of one request, whatever protocol they came in: what the request
// readers write, the renderer reads, and the output parser and the engine are set up from.
//
// Plain values.  Thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "codec/json_value.h"

namespace fathom::codec {

// Which prompt form, and which rules for sampling values and images.
enum class ModelVersion { kV4Pro, kV41Flash };

// Spellings of control tokens.  The defaults are those of DeepSeek-V4.1's tokenizer.json.
struct SpecialTokens {
  std::string begin_of_sentence = "<｜begin▁of▁sentence｜>";
  std::string end_of_sentence = "<｜end▁of▁sentence｜>";
  std::string think_begin = "<think>";
  std::string think_end = "</think>";
  std::string system = "<｜System｜>";
  std::string user = "<｜User｜>";
  std::string assistant = "<｜Assistant｜>";
  std::string latest_reminder = "<｜latest_reminder｜>";
  std::string dsml = "｜DSML｜";  // without the angle brackets, which are ordinary tokens
  std::string image = "<｜image｜>";
};

// What the text <｜image｜> stands for in `content`: see InputMessage.
inline constexpr std::string_view kImagePlaceholder = "<｜image｜>";

enum class ImageDetail { kHigh, kLow, kOriginal, kAuto };  // only kLow changes anything
std::string_view image_detail_name(ImageDetail detail);    // "high", ...

struct ImageSource {
  enum class Kind { kDataUrl, kUrl, kBytes };
  Kind kind = Kind::kUrl;
  std::string data;  // the data URL, the URL, or the bytes of an image file
  ImageDetail detail = ImageDetail::kHigh;
  // Byte offset of its placeholder in the message's `content`; kNextPlaceholder: the first
  // kImagePlaceholder that is not yet taken.  Set by the request readers, so that a placeholder
  // that a user typed is never taken for an image.
  static constexpr size_t kNextPlaceholder = static_cast<size_t>(-1);
  size_t offset = kNextPlaceholder;
  std::string path;  // where the request has it, for errors: ".messages[0].content[1]"
  bool operator==(const ImageSource&) const = default;
};

struct ToolDefinition {
  std::string name;
  std::optional<std::string> description;
  JsonValue parameters;  // JSON Schema, members in the order of the request
  std::optional<bool> strict;
  bool defer_loading = false;  // not listed at the beginning of the prompt
  bool operator==(const ToolDefinition&) const = default;
};

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON text; from a client it may be anything
  bool operator==(const ToolCall&) const = default;
};

enum class Role { kSystem, kUser, kAssistant, kTool, kLatestReminder };
std::string_view role_name(Role role);  // "system", ..., "latest_reminder"

// One turn.  The first occurrences of kImagePlaceholder in `content`, one for each image source,
// are the places of the images; later ones are plain text.
struct InputMessage {
  Role role = Role::kUser;
  std::string content;
  std::vector<ImageSource> image_sources;        // not of assistant and reminder
  std::vector<ToolDefinition> tools;             // system only: become available here
  std::optional<std::string> reasoning_content;  // assistant only
  std::vector<ToolCall> tool_calls;              // assistant only
  bool prefix = false;                           // assistant and last only: continue it
  std::string tool_call_id;                      // tool only
  bool operator==(const InputMessage&) const = default;
};

enum class ToolChoice { kAuto, kRequired, kNone };  // a named choice keeps one tool, kRequired

enum class Effort { kLow, kHigh, kXhigh, kMax };
std::string_view effort_name(Effort effort);  // "low", "high", "xhigh", "max"

struct ResponseFormat {
  enum class Kind { kText, kJsonObject, kJsonSchema, kRegex };
  Kind kind = Kind::kText;
  JsonValue schema;   // kJsonSchema
  std::string regex;  // kRegex
  bool operator==(const ResponseFormat&) const = default;
};

struct Conversation {
  std::vector<InputMessage> messages;
  bool thinking = true;  // for the next assistant turn
  std::vector<ToolDefinition> tools;
  ToolChoice tool_choice = ToolChoice::kAuto;
  std::optional<Effort> effort;         // with thinking only
  std::optional<int32_t> effort_level;  // 1-100, written as it is; wins over `effort`
  ResponseFormat response_format;
  bool operator==(const Conversation&) const = default;
};

// What the engine must hold the output to.
struct OutputConstraint {
  // kToolCall: text with calls of these tools; kToolCallRequired: a call; kJson: an object, of the
  // schema `text` unless that is empty; kRegex: `text` matches the whole answer.
  enum class Kind { kToolCall, kToolCallRequired, kJson, kRegex };
  Kind kind = Kind::kJson;
  std::string text;  // tools: a compact JSON array of them
  bool operator==(const OutputConstraint&) const = default;
};
std::string_view constraint_kind_name(OutputConstraint::Kind kind);  // "tool_call", ...

struct InferenceOptions {
  std::optional<uint32_t> max_tokens;
  float temperature = 1.0f;
  float top_p = 1.0f;
  bool logprobs = false;
  std::optional<uint8_t> top_logprobs;
  std::optional<uint64_t> seed;
  std::optional<OutputConstraint> output_constraint;
  // Taken by clients of Chat Completions only; the released service checks and drops them.
  std::optional<float> presence_penalty;
  std::optional<float> frequency_penalty;
  bool operator==(const InferenceOptions&) const = default;
};

// How the output of the model is to be read.
struct ParsingOptions {
  enum class Stage {
    kNone,                   // no thinking: what comes is the answer
    kReasoningStart,         // the prompt ends in <think>
    kReasoningContinuation,  // a prefix within the reasoning
    kContentContinuation,    // a prefix within the answer: leading line breaks count
  };
  bool parse_tool_calls = true;       // tools are offered and the choice is not kNone
  bool starts_in_tool_calls = false;  // the prompt already opened the block of calls
  bool parse_json_output = false;     // JSON mode: strip what is around the JSON
  bool strip_json_fence = false;      // JSON Schema: strip a fence around the answer
  bool single_call = false;           // the answer ends with its first call: parallel ones are off
  Stage thinking_initial_stage = Stage::kNone;
  std::vector<std::string> stop_sequences;
  SpecialTokens special_tokens;
};
std::string_view thinking_stage_name(ParsingOptions::Stage stage);  // "reasoning_start"; none: ""
// Sets how the answer to `conversation`, which is complete, is to be read: all but stop sequences,
// spellings and single_call, which stay.
void set_parsing(const Conversation& conversation, ParsingOptions* parsing);

// A function within a namespace (Responses) has the flat name "NAMESPACE::NAME" in the prompt.
struct NamespacedTool {
  std::string flat_name;
  std::string name_space;
  std::string name;
  bool operator==(const NamespacedTool&) const = default;
};

// What one request asks for.
struct ConversationRequest {
  Conversation conversation;
  InferenceOptions inference;
  ParsingOptions parsing;
  ModelVersion model_version = ModelVersion::kV41Flash;
  bool stream = false;
  bool include_usage = false;                    // Chat: stream_options.include_usage
  uint32_t num_choices = 1;                      // Chat: n
  std::vector<NamespacedTool> namespaced_tools;  // Responses: for the names in its events
  std::vector<std::string> custom_tools;         // Responses: functions that are custom tools there
};

}  // namespace fathom::codec
