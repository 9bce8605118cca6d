// The operations that vectors name, and how one is run.  One source file a group of operations;
// each has its table here.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "codec/conversation.h"
#include "codec/json_value.h"
#include "codec/request.h"
#include "codec/tokenizer.h"

namespace fathom::check_vectors {

// What a call gave: a result, or an error in the form of the vectors.
struct Outcome {
  bool ok = false;
  codec::JsonValue result;
  std::string error_kind;    // "bad_request", "parse", "internal", "stream", or of an image
  std::string error_detail;  // the client's text

  static Outcome of(codec::JsonValue result) { return {true, std::move(result), {}, {}}; }
  static Outcome failed(std::string kind, std::string detail) {
    return {false, {}, std::move(kind), std::move(detail)};
  }
};

// What the operations share.
class Context {
 public:
  explicit Context(std::string tokenizer_dir) : tokenizer_dir_(std::move(tokenizer_dir)) {}
  // The tokenizer of a version; read at the first use.  Null if its file cannot be read; the error
  // is printed once.
  const codec::Tokenizer* tokenizer(codec::ModelVersion version);

 private:
  std::string tokenizer_dir_;
  std::unique_ptr<codec::Tokenizer> v4_;
  std::unique_ptr<codec::Tokenizer> v41_;
};

struct Op {
  std::string_view name;
  Outcome (*run)(const codec::JsonObject& vector, Context& context);
  // Brings an expected and an actual result into the form in which they are compared; null: as they
  // are.  (Call ids, time stamps, the cut of arguments.)
  void (*normalize)(codec::JsonValue* result) = nullptr;
  // Says whether two error texts of one kind count as equal; null: they must be the same, but for
  // kind "parse", whose texts are ours.
  bool (*same_detail)(std::string_view expected, std::string_view actual) = nullptr;
};

std::span<const Op> request_ops();    // convert, render, encode, resolve_max_tokens
std::span<const Op> output_ops();     // parse, events, stream, complete
std::span<const Op> json_ops();       // numbers, stringify, json_format
std::span<const Op> image_ops();      // image_size, image_resolve, image_tokens
std::span<const Op> tokenizer_ops();  // tokenize; encode, encode_bytes, decode of the tokenizer

// Members of a vector.  Missing ones and ones of another kind give "" or the fallback.
std::string_view text_of(const codec::JsonObject& vector, std::string_view key);
int64_t integer_of(const codec::JsonObject& vector, std::string_view key, int64_t fallback = 0);
codec::ModelVersion version_of(const codec::JsonObject& vector);

// The options of a vector, with the names of models that the vectors use.
codec::ConvertOptions options_of(const codec::JsonObject& vector);
// The request that a vector holds in `protocol` and `body`, `body_text` or `body_hex`.
Result<codec::ConversationRequest> request_of(const codec::JsonObject& vector);
// An error of the request readers in the form of the vectors.
Outcome outcome_of(const Status& error);

}  // namespace fathom::check_vectors
