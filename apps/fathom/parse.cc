#include "parse.h"

#include <chrono>
#include <limits>
#include <memory>
#include <random>

#include "codec/json_text.h"
#include "codec/output/answer_writer.h"
#include "codec/output/recorded_output.h"
#include "codec/request.h"
#include "engine.h"
#include "failure.h"
#include "output.h"

namespace fathom::app {
namespace {

using codec::JsonObject;
using codec::JsonValue;
using codec::OutputEvent;
using codec::OutputStream;

// The request that an output answers.
struct Asked {
  codec::Protocol protocol;
  JsonValue body;
  codec::ConversationRequest request;
};

codec::CallIds random_call_ids() {
  return codec::CallIds([device = std::make_shared<std::random_device>()] {
    return (uint64_t{(*device)()} << 32) | (*device)();
  });
}

std::string name_of(const ParseOptions& options) {
  return options.file == "-" ? "standard input" : options.file;
}

// The file as {"text": ...} or as the object that it holds.
Result<JsonValue> read_input(const ParseOptions& options) {
  FATHOM_ASSIGN(std::string text, read_text(options.file));
  FATHOM_TRY(check_utf8(text, name_of(options)));
  if (options.is_text) {
    JsonObject object;
    object.set("text", JsonValue(std::move(text)));
    return JsonValue(std::move(object));
  }
  Result<JsonValue> value = codec::parse_json(text);
  if (!value) return wrong_use(name_of(options) + ": " + value.error().message());
  if (value->if_object() == nullptr) return wrong_use(name_of(options) + " is not a JSON object");
  return value;
}

Result<std::optional<Asked>> read_request(const ParseOptions& options, const JsonValue& input) {
  std::string protocol_name = options.protocol;
  std::string where = name_of(options) + ": .body";
  Asked asked{};
  if (options.request_file) {
    where = *options.request_file;
    FATHOM_ASSIGN(const std::string text, read_text(*options.request_file));
    Result<JsonValue> body = codec::parse_json(text);
    if (!body) return wrong_use(where + ": " + body.error().message());
    asked.body = *std::move(body);
  } else if (const JsonValue* body = input.find("body")) {
    asked.body = *body;
    const JsonValue* name = input.find("protocol");
    if (name != nullptr && name->if_string() != nullptr) protocol_name = *name->if_string();
  } else {
    return std::optional<Asked>();
  }
  const std::optional<codec::Protocol> protocol = codec::parse_protocol(protocol_name);
  if (!protocol) {
    return wrong_use("\"" + protocol_name +
                     "\" is no protocol; use chat_completions, responses or messages");
  }
  asked.protocol = *protocol;
  codec::ConvertOptions convert;
  convert.models.clear();  // any name
  Result<codec::ConversationRequest> request =
      codec::convert_request(*protocol, asked.body, convert);
  if (!request) return wrong_use(where + ": " + request.error().message());
  asked.request = *std::move(request);
  return std::optional<Asked>(std::move(asked));
}

Result<OutputStream::Options> stream_options(const ParseOptions& options, const JsonValue& input,
                                             const std::optional<Asked>& asked) {
  OutputStream::Options stream;
  if (asked) {
    stream = OutputStream::options_of(asked->request);
  } else if (const JsonValue* parsing = input.find("parsing_options")) {
    Result<codec::ParsingOptions> read = codec::read_parsing_options(*parsing);
    if (!read) return wrong_use(name_of(options) + ": .parsing_options" + read.error().message());
    stream.parser.parsing = *std::move(read);
  }
  using Stage = codec::ParsingOptions::Stage;
  Stage& stage = stream.parser.parsing.thinking_initial_stage;
  if (options.thinking) stage = Stage::kReasoningStart;
  stream.thinking = asked ? asked->request.conversation.thinking : stage != Stage::kNone;
  if (!options.events) {
    stream.parser.arguments.hold_bytes = std::numeric_limits<size_t>::max();
  }
  return stream;
}

Result<std::unique_ptr<codec::Tokenizer>> find_tokenizer(const ParseOptions& options) {
  if (options.tokenizer_file) return codec::Tokenizer::load(*options.tokenizer_file);
  FATHOM_ASSIGN(const std::filesystem::path dir, find_model(options.model));
  return load_tokenizer(dir);
}

// The events of an answer as they stream, or the whole answer, in the words of its protocol.
std::string answer_text(const ParseOptions& options, const Asked& asked,
                        const std::vector<OutputEvent>& events) {
  const JsonValue* model = asked.body.find("model");
  codec::AnswerInfo info;
  info.id = "parsed";
  if (model != nullptr && model->if_string() != nullptr) info.model = *model->if_string();
  info.created = std::chrono::duration_cast<std::chrono::seconds>(
                     std::chrono::system_clock::now().time_since_epoch())
                     .count();
  const auto writer = codec::AnswerWriter::create(asked.protocol, asked.request, asked.body, info);
  std::vector<codec::AnswerEvent> written;
  for (const OutputEvent& event : events) writer->write(event, &written);
  if (!options.events) return writer->json() + "\n";
  std::string text;
  for (const codec::AnswerEvent& event : written) text += codec::server_sent_event(event);
  if (!writer->stream_end().empty()) {
    text += codec::server_sent_event({"", std::string(writer->stream_end())});
  }
  return text;
}

Status parse(const ParseOptions& options) {
  FATHOM_ASSIGN(const JsonValue input, read_input(options));
  FATHOM_ASSIGN(const std::optional<Asked> asked, read_request(options, input));
  FATHOM_ASSIGN(const OutputStream::Options stream_setup, stream_options(options, input, asked));
  if (options.events && !asked) {
    return wrong_use("--events needs a request: --request FILE, or \"protocol\" and \"body\" in " +
                     name_of(options));
  }
  Result<std::vector<codec::RecordedChunk>> chunks = codec::read_recorded_output(input);
  if (!chunks) return wrong_use(name_of(options) + ": " + chunks.error().message());
  std::unique_ptr<codec::Tokenizer> tokenizer;
  for (const codec::RecordedChunk& chunk : *chunks) {
    if (chunk.kind != codec::RecordedChunk::Kind::kTokens || tokenizer != nullptr) continue;
    FATHOM_ASSIGN(tokenizer, find_tokenizer(options));
  }
  OutputStream stream(stream_setup, tokenizer.get(), random_call_ids());
  std::vector<OutputEvent> events;
  if (const Status status = codec::replay(*chunks, &stream, &events); !status.ok()) {
    return wrong_use(name_of(options) + ": " + status.message());
  }
  if (asked) return print(answer_text(options, *asked, events));
  codec::ParsedOutput output;
  for (const OutputEvent& event : events) output.add(event);
  const JsonValue parsed(codec::parsed_output_json(output));
  return print(codec::write_json(parsed, codec::JsonStyle::kCompact) + "\n");
}

}  // namespace

int run_parse(const ParseOptions& options) {
  const Status status = parse(options);
  return is_closed_output(status) ? kExitDone : finish(status);
}

}  // namespace fathom::app
