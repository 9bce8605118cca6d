#include "server/prepare.h"

#include <algorithm>

#include "codec/constraint_fields.h"
#include "codec/engine_constraint.h"
#include "codec/json_text.h"
#include "codec/output_limit.h"
#include "codec/prompt.h"
#include "server/json_fields.h"

namespace fathom::server {
namespace {

constexpr std::string_view kContextError = "This model's maximum context length is ";

// Texts up to so many bytes a token of the context are not looked at: scanning the vocabulary for
// its longest word is for those that could be refused.
constexpr size_t kLongBytes = 8;

codec::ConvertOptions convert_options(const Services& services) {
  codec::ConvertOptions convert;
  convert.default_thinking = services.options.default_thinking;
  convert.keep_client_sampling = services.options.client_sampling;
  convert.max_schema_bytes = codec::kMaxSchemaBytes;
  convert.max_choices = static_cast<uint32_t>(services.options.max_n);
  convert.models.clear();  // names are checked by Services::model_name()
  convert.any_model = services.model.version;
  return convert;
}

}  // namespace

Result<std::string> Services::model_name(const codec::JsonValue& body) const {
  const codec::JsonValue* field = json_field(body, "model");
  if (field == nullptr) return model.names.front();
  const std::string* name = field->if_string();
  if (name == nullptr) {
    return Status(StatusCode::kInvalidArgument, "invalid request body: .model: expected a string");
  }
  if (options.any_model_name) return *name;
  std::string served;
  for (const std::string& one : model.names) {
    if (one == *name) return one;
    served += (served.empty() ? "" : ", ") + one;
  }
  return Status(StatusCode::kNotFound,
                "The model `" + *name + "` does not exist; served here: " + served);
}

Status check_text_fits(const Services& services, size_t text_bytes) {
  const auto context = static_cast<size_t>(services.model.context_tokens);
  if (text_bytes <= context * kLongBytes) return Status();
  const codec::Tokenizer& tokenizer = *services.model.tokenizer;
  size_t longest = 1;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    longest = std::max(longest, tokenizer.token_bytes(id).size());
  }
  if (text_bytes / longest <= context) return Status();
  return Status(StatusCode::kInvalidArgument,
                std::string(kContextError) + std::to_string(context) +
                    " tokens. However, your messages have " + std::to_string(text_bytes) +
                    " bytes, which are at least " + std::to_string(text_bytes / longest) +
                    " tokens. Please reduce the length of the messages.");
}

Result<codec::JsonValue> parse_body(std::string_view text) {
  Result<codec::JsonValue> value = codec::parse_json(text);
  if (!value) {
    return Status(StatusCode::kInvalidArgument, "invalid JSON request: " + value.error().message());
  }
  if (value->if_object() == nullptr) {
    return Status(StatusCode::kInvalidArgument, "invalid request body: expected an object");
  }
  return value;
}

Result<codec::ConversationRequest> read_conversation(const Services& services,
                                                     codec::Protocol protocol,
                                                     const codec::JsonValue& body) {
  return codec::convert_request(protocol, body, convert_options(services));
}

Status encode_conversation(const Services& services, const codec::ConversationRequest& chat,
                           Request* out) {
  codec::RenderOptions render;
  render.version = chat.model_version;
  FATHOM_ASSIGN(const codec::Prompt prompt, codec::render_prompt(chat.conversation, render));
  FATHOM_TRY(check_text_fits(services, prompt.text.size()));
  FATHOM_ASSIGN(out->prompt, codec::encode_prompt(*services.model.tokenizer, prompt));
  if (prompt.images.empty()) return Status();
  if (services.model.add_images) return services.model.add_images(prompt, out);
  return Status(StatusCode::kInvalidArgument,
                prompt.images.front()->path + ": images are not supported by this server");
}

Status settle_constraint(const Services& services, const codec::JsonValue& body, Request* request) {
  FATHOM_ASSIGN(const std::optional<Constraint> given, codec::read_constraint_fields(body));
  if (given) {
    const int32_t starts_after = request->constraint.starts_after;
    std::string begun = std::move(request->constraint.begun);
    request->constraint = *given;
    request->constraint.starts_after = starts_after;
    request->constraint.begun = std::move(begun);
  }
  if (request->constraint.kind == Constraint::Kind::kNone || !services.model.compile)
    return Status();
  return services.model.compile(request->constraint);
}

Result<PreparedConversation> prepare_conversation(const Services& services,
                                                  codec::Protocol protocol,
                                                  codec::JsonValue* body) {
  PreparedConversation out;
  // Responses say again what they were asked.
  FATHOM_ASSIGN(out.chat, protocol == codec::Protocol::kResponses
                              ? read_conversation(services, protocol, *body)
                              : codec::take_request(protocol, body, convert_options(services)));
  Request& request = out.request;
  FATHOM_TRY(read_engine_fields(*services.model.tokenizer, *body, &request));
  // Before the prompt: a schema stands in it, and one that is too large is refused without encoding
  // it.
  FATHOM_ASSIGN(request.constraint, codec::engine_constraint(out.chat, *services.model.tokenizer));
  if (codec::begins_thinking(out.chat.conversation)) {
    request.constraint.starts_after =
        services.model.tokenizer->find(out.chat.parsing.special_tokens.think_end).value_or(-1);
  } else if (request.constraint.kind != Constraint::Kind::kToolCalls) {
    request.constraint.begun = codec::begun_answer(out.chat.conversation);
  }
  FATHOM_TRY(settle_constraint(services, *body, &request));
  FATHOM_TRY(encode_conversation(services, out.chat, &request));
  const codec::InferenceOptions& inference = out.chat.inference;
  request.params.temperature = inference.temperature;
  request.params.top_p = inference.top_p;
  request.params.presence_penalty = inference.presence_penalty.value_or(0);
  request.params.frequency_penalty = inference.frequency_penalty.value_or(0);
  request.params.seed = inference.seed;
  if (inference.logprobs) {
    request.params.logprobs = static_cast<int32_t>(inference.top_logprobs.value_or(0));
  }
  FATHOM_ASSIGN(const uint32_t max_tokens,
                codec::resolve_max_tokens(out.chat, convert_options(services),
                                          static_cast<int64_t>(request.prompt.size()),
                                          services.model.context_tokens));
  request.params.max_tokens = static_cast<int32_t>(max_tokens);
  request.n = static_cast<int32_t>(out.chat.num_choices);
  const double timeout_s = services.options.request_timeout_s;
  if (timeout_s > 0) request.timeout_s = timeout_s;
  return out;
}

Result<int32_t> fit_max_tokens(const Services& services, int64_t prompt_tokens,
                               std::optional<int64_t> max_tokens) {
  const int64_t context = services.model.context_tokens;
  const int64_t wanted = max_tokens.value_or(1);
  if (prompt_tokens + wanted <= context) {
    return static_cast<int32_t>(max_tokens.value_or(context - prompt_tokens));
  }
  return Status(StatusCode::kInvalidArgument,
                std::string(kContextError) + std::to_string(context) +
                    " tokens. However, you requested " + std::to_string(prompt_tokens + wanted) +
                    " tokens (" + std::to_string(prompt_tokens) + " in the prompt, " +
                    std::to_string(wanted) +
                    " in the completion). Please reduce the length of one of them.");
}

ApiError prepare_error(const Status& status) {
  ApiError error = api_error(status);
  if (status.message().starts_with(kContextError)) error.code = "context_length_exceeded";
  if (status.code() == StatusCode::kNotFound) {
    error.code = "model_not_found";
    error.param = "model";
  }
  // "invalid request body: .FIELD: ..." names the field.
  constexpr std::string_view kField = "invalid request body: .";
  if (error.message.starts_with(kField)) {
    const size_t end = error.message.find(':', kField.size());
    if (end != error.message.npos) {
      error.param = error.message.substr(kField.size(), end - kField.size());
    }
  }
  return error;
}

}  // namespace fathom::server
