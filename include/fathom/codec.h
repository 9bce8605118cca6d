// The codec alone: requests of three API protocols to prompts and token ids, and what a model
// writes back to answers of the same protocol.  For programs that bring their own engine.
//
//   auto codec = *fathom::Codec::open("tokenizer.json");
//   auto rendered = *codec->render(fathom::ApiProtocol::kChatCompletions, body);
//   auto reader = *codec->read_answer(fathom::ApiProtocol::kChatCompletions, body, {.id = "a"});
//   ... run rendered.ids through a model; for each new id:
//   reader->push_ids({&id, 1}, &events);            // server-sent events, ready to send
//   reader->finish(fathom::AnswerEnd::kStop, &events);
//   reader->json();                                 // or the whole answer
//
// This header needs the standard library only.  Errors are Status values whose text is for clients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fathom/status.h"

namespace fathom {

enum class ApiProtocol { kChatCompletions, kResponses, kMessages };

struct CodecOptions {
  bool v4 = false;               // prompts of DeepSeek-V4 instead of V4.1
  bool default_thinking = true;  // if a request does not say
  // False: temperature and top_p as the released service sets them for its models.
  bool keep_client_sampling = true;
};

// What the engine needs of a request.
struct RenderedRequest {
  std::string prompt;  // for people: text of users may look like a control token here
  // Bytes of `prompt` that are control tokens, ascending.
  std::vector<std::pair<size_t, size_t>> controls;
  std::vector<int32_t> ids;         // empty without a tokenizer; an image is one id
  std::vector<std::string> images;  // data URLs and URLs, in the order of their placeholders
  bool thinking = false;
  bool stream = false;
  float temperature = 1;
  float top_p = 1;
  std::optional<uint32_t> max_tokens;
  std::optional<uint64_t> seed;
  std::vector<std::string> stop;  // AnswerReader finds them; the engine may end on them, too
  // What the output must be held to: "", "tool_call", "tool_call_required", "json" or "regex", with
  // its tools (JSON), schema or pattern.
  std::string constraint;
  std::string constraint_text;
};

struct AnswerIdentity {
  std::string id = {};
  std::string model = {};
  int64_t created = 0;  // Unix time, seconds
  uint64_t prompt_tokens = 0;
  uint64_t cached_tokens = 0;
};

enum class AnswerEnd { kStop, kLength, kContentFilter };

// Thread: one; one object an answer.  Must not outlive its Codec.
class AnswerReader {
 public:
  virtual ~AnswerReader() = default;
  // Each appends the server-sent events ("event: ...\ndata: ...\n\n") that follow; `events` may be
  // null.  Error (kInternal): an id outside of the vocabulary, or no tokenizer.
  virtual Status push_ids(std::span<const int32_t> ids, std::string* events) = 0;
  virtual void push_text(std::string_view text, uint64_t num_tokens, std::string* events) = 0;
  // Once, at the end of what the engine writes.
  virtual void finish(AnswerEnd end, std::string* events) = 0;
  // A stop string ended the answer: the engine can stop, and finish() is not needed.
  virtual bool finished() const = 0;
  // The whole answer in the form of the protocol; after the end.
  virtual std::string json() const = 0;
};

// Thread: any; immutable.
class Codec {
 public:
  virtual ~Codec() = default;
  // Without a file there are no ids: prompts and outputs are text.  Errors: those of reading a
  // tokenizer.json.
  static Result<std::unique_ptr<Codec>> open(
      const std::optional<std::filesystem::path>& tokenizer_json, const CodecOptions& options = {});

  // `body`: the JSON of the request.  Error (kInvalidArgument): HTTP 400, see error_json().
  virtual Result<RenderedRequest> render(ApiProtocol protocol, std::string_view body) const = 0;
  virtual Result<std::unique_ptr<AnswerReader>> read_answer(
      ApiProtocol protocol, std::string_view body, const AnswerIdentity& identity) const = 0;

  virtual std::vector<int32_t> encode(std::string_view text) const = 0;  // no control tokens
  virtual std::string decode(std::span<const int32_t> ids) const = 0;
};

// {"error": {"message", "type", "param", "code"}} of an error of the above.
std::string codec_error_json(const Status& error);

}  // namespace fathom
