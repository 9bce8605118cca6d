// The operations on the output of the model: parse, events, stream, complete.
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "check_vectors/ops.h"
#include "check_vectors/output_normalize.h"
#include "codec/json_text.h"
#include "codec/output/answer_writer.h"
#include "codec/output/recorded_output.h"
#include "codec/request.h"
#include "codec/unicode_utf8.h"

namespace fathom::check_vectors {
namespace {

using codec::JsonArray;
using codec::JsonObject;
using codec::JsonValue;
using codec::OutputEvent;
using codec::OutputStream;
using codec::RecordedChunk;

constexpr int64_t kAnyTime = 1700000000;

std::string text_or(const JsonObject& vector, std::string_view key, std::string_view fallback) {
  const std::string_view text = text_of(vector, key);
  return std::string(text.empty() ? fallback : text);
}

// The chunks of a vector; those of kind "token_text" become one chunk an id.
Result<std::vector<RecordedChunk>> read_chunks(const JsonObject& vector,
                                               const codec::Tokenizer* tokenizer) {
  JsonArray chunks;
  const JsonValue* list = vector.find("chunks");
  if (list == nullptr || list->if_array() == nullptr) {
    return codec::read_recorded_output(JsonValue(vector));
  }
  for (const JsonValue& chunk : *list->if_array()) {
    const JsonObject* object = chunk.if_object();
    if (object == nullptr || text_of(*object, "kind") != "token_text" || tokenizer == nullptr) {
      chunks.push_back(chunk);
      continue;
    }
    for (const int32_t id : tokenizer->encode(text_of(*object, "text"), true)) {
      JsonObject token;
      token.set("kind", JsonValue("tokens"));
      token.set("ids", JsonValue(JsonArray{JsonValue(id)}));
      chunks.push_back(JsonValue(std::move(token)));
    }
  }
  JsonObject output;
  output.set("chunks", JsonValue(std::move(chunks)));
  return codec::read_recorded_output(JsonValue(std::move(output)));
}

// The text chunk cut into several; `cuts` are character offsets.
std::vector<RecordedChunk> cut_chunks(std::vector<RecordedChunk> whole, const JsonArray& cuts) {
  const std::string text = std::exchange(whole.front().text, {});
  std::vector<RecordedChunk> chunks;
  size_t byte = 0;
  int64_t character = 0;
  const auto add = [&](size_t end) {
    RecordedChunk& chunk = chunks.emplace_back();
    chunk.text = text.substr(byte, end - byte);
    byte = end;
  };
  for (const JsonValue& cut : cuts) {
    size_t end = byte;
    for (; character < *cut.if_int64() && end < text.size(); ++character) {
      end += static_cast<size_t>(codec::utf8_step(std::string_view(text).substr(end)).length);
    }
    add(end);
  }
  add(text.size());
  chunks.insert(chunks.end(), whole.begin() + 1, whole.end());
  return chunks;
}

bool has_ids(const std::vector<RecordedChunk>& chunks) {
  return std::any_of(chunks.begin(), chunks.end(), [](const RecordedChunk& chunk) {
    return chunk.kind == RecordedChunk::Kind::kTokens;
  });
}

Result<JsonObject> parse_chunks(const std::vector<RecordedChunk>& chunks,
                                const OutputStream::Options& options,
                                const codec::Tokenizer* tokenizer) {
  OutputStream stream(options, tokenizer, codec::CallIds::from_seed(1));
  std::vector<OutputEvent> events;
  FATHOM_TRY(codec::replay(chunks, &stream, &events));
  codec::ParsedOutput output;
  for (const OutputEvent& event : events) output.add(event);
  return codec::parsed_output_json(output);
}

Outcome run_parse(const JsonObject& vector, Context& context) {
  OutputStream::Options options;
  if (const JsonValue* parsing = vector.find("parsing_options")) {
    Result<codec::ParsingOptions> read = codec::read_parsing_options(*parsing);
    if (!read) return Outcome::failed("internal", read.error().message());
    options.parser.parsing = *std::move(read);
  }
  options.parser.arguments.hold_bytes = std::numeric_limits<size_t>::max();
  const Result<std::vector<RecordedChunk>> chunks = read_chunks(vector, nullptr);
  if (!chunks) return Outcome::failed("internal", chunks.error().message());
  const codec::Tokenizer* tokenizer =
      has_ids(*chunks) ? context.tokenizer(version_of(vector)) : nullptr;

  const JsonValue* cuts = vector.find("cuts");
  const bool is_cut = cuts != nullptr && cuts->if_array() != nullptr;
  const size_t num_ways = is_cut ? cuts->if_array()->size() : 1;
  JsonObject first;
  for (size_t i = 0; i < num_ways; ++i) {
    Result<JsonObject> result =
        parse_chunks(is_cut ? cut_chunks(*chunks, *(*cuts->if_array())[i].if_array()) : *chunks,
                     options, tokenizer);
    if (!result) return Outcome::failed("stream", result.error().message());
    if (is_cut) result->erase("completion_tokens");  // not recorded
    if (i == 0) first = *result;
    if (!(*result == first)) {
      return Outcome::failed("internal", "the result depends on where the output is cut");
    }
  }
  return Outcome::of(JsonValue(std::move(first)));
}

JsonValue parsed(const std::string& json) { return *codec::parse_json(json); }

Outcome run_events(const JsonObject& vector, Context& context) {
  const std::optional<codec::Protocol> protocol =
      codec::parse_protocol(text_of(vector, "protocol"));
  const JsonValue* body = vector.find("body");
  if (!protocol || body == nullptr) return Outcome::failed("internal", "no protocol or body");
  const codec::ModelVersion version = version_of(vector);
  codec::ConvertOptions convert;
  convert.models.insert_or_assign("m", version);
  convert.models.insert_or_assign("deepseek-flash", version);
  const Result<codec::ConversationRequest> request =
      codec::convert_request(*protocol, *body, convert);
  if (!request) return Outcome::failed("bad_request", request.error().message());

  const bool no_tokenizer = vector.find("no_tokenizer") != nullptr;
  const codec::Tokenizer* tokenizer = no_tokenizer ? nullptr : context.tokenizer(version);
  const Result<std::vector<RecordedChunk>> chunks = read_chunks(vector, tokenizer);
  if (!chunks) return Outcome::failed("internal", chunks.error().message());
  OutputStream stream(OutputStream::options_of(*request), tokenizer, codec::CallIds::from_seed(1));
  std::vector<OutputEvent> events;
  if (const Status status = codec::replay(*chunks, &stream, &events); !status.ok()) {
    return Outcome::failed("stream", status.message());
  }

  std::optional<std::string> signature;
  if (vector.find("signature") != nullptr) signature = text_of(vector, "signature");
  const auto writer =
      codec::AnswerWriter::create(*protocol, *request, *body,
                                  {text_or(vector, "response_id", "mock-id"),
                                   text_or(vector, "model", "deepseek-flash"), kAnyTime},
                                  signature);
  JsonObject result;
  if (*protocol == codec::Protocol::kResponses) result.set("initial", parsed(writer->json()));
  std::vector<codec::AnswerEvent> written;
  for (const OutputEvent& event : events) writer->write(event, &written);
  JsonArray list;
  for (const codec::AnswerEvent& event : written) list.push_back(parsed(event.data));
  result.set("events", JsonValue(std::move(list)));
  result.set("complete", parsed(writer->json()));
  return Outcome::of(JsonValue(std::move(result)));
}

Outcome run_stream(const JsonObject& vector, Context& context) {
  Outcome outcome = run_events(vector, context);
  if (!outcome.ok) return outcome;
  normalize_output(&outcome.result);
  outcome.result.if_object()->erase("complete");
  return outcome;
}

Outcome run_complete(const JsonObject& vector, Context& context) {
  Outcome outcome = run_events(vector, context);
  if (outcome.ok) outcome.result = JsonValue(*outcome.result.find("complete"));
  return outcome;
}

constexpr std::array kOps = {
    Op{"parse", run_parse},
    Op{"events", run_events, normalize_output},
    Op{"stream", run_stream, normalize_output},
    Op{"complete", run_complete, normalize_output},
};

}  // namespace

std::span<const Op> output_ops() { return kOps; }

}  // namespace fathom::check_vectors
