#include "server/model_routes.h"

#include <ctime>

#include "codec/output/event_json.h"
#include "codec/request.h"
#include "server/answer.h"
#include "server/json_fields.h"
#include "server/prepare.h"
#include "server/raw_prompt.h"

namespace fathom::server {
namespace {

using codec::JsonValue;

// Text to tokenize: the ids of a byte each, as numbers and as texts, take some thirty times as
// much.
constexpr size_t kMaxTokenizeBytes = size_t{8} << 20;

std::string rfc3339(int64_t unix_seconds) {
  const std::time_t time = unix_seconds;
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

// Fields of OpenAI's, vLLM's and Anthropic's lists of models at once.
void write_model(const ServedModel& model, const std::string& name, codec::JsonWriter* json) {
  json->begin_object().member("id", name).member("object", "model");
  json->key("created").integer(model.created).member("owned_by", "fathom");
  json->member("root", model.names.front());
  json->key("max_model_len").integer(model.context_tokens);
  json->member("type", "model").member("display_name", name).member("lifecycle", "active");
  json->key("max_input_tokens").integer(model.context_tokens);
  json->key("max_tokens").integer(model.context_tokens);
  json->member("created_at", rfc3339(model.created)).end_object();
}

void list_models(const ServedModel& model, Exchange& exchange) {
  std::string out;
  codec::JsonWriter json(&out);
  json.begin_object().member("object", "list").key("data").begin_array();
  for (const std::string& name : model.names) write_model(model, name, &json);
  json.end_array().key("has_more").boolean(false);
  json.member("first_id", model.names.front()).member("last_id", model.names.back()).end_object();
  exchange.reply(200, std::move(out));
}

void show_model(const ServedModel& model, Exchange& exchange) {
  const std::string asked = exchange.request().path.substr(std::string_view("/v1/models/").size());
  for (const std::string& name : model.names) {
    if (name != asked) continue;
    std::string out;
    codec::JsonWriter json(&out);
    write_model(model, name, &json);
    return exchange.reply(200, std::move(out));
  }
  exchange.fail({.status = 404,
                 .message = "The model `" + asked + "` does not exist; see /v1/models",
                 .code = "model_not_found",
                 .param = "model"});
}

Result<std::vector<int32_t>> tokenize_ids(const Services& services, const JsonValue& body) {
  if (json_field(body, "messages") != nullptr) {
    FATHOM_ASSIGN(const codec::ConversationRequest chat,
                  read_conversation(services, codec::Protocol::kChatCompletions, body));
    Request request;
    FATHOM_TRY(encode_conversation(services, chat, &request));
    return std::move(request.prompt);
  }
  // vLLM's field, or llama.cpp's, each with its own default.
  const bool is_content = json_field(body, "prompt") == nullptr;
  const JsonValue* text = json_field(body, is_content ? "content" : "prompt");
  if (text == nullptr || text->if_string() == nullptr) {
    return Status(StatusCode::kInvalidArgument,
                  "invalid request body: give `prompt` (a string), `content` (a string) or "
                  "`messages`");
  }
  if (text->if_string()->size() > kMaxTokenizeBytes) {
    return Status(StatusCode::kInvalidArgument, "the text has " +
                                                    std::to_string(text->if_string()->size()) +
                                                    " bytes; this server tokenizes at most " +
                                                    std::to_string(kMaxTokenizeBytes) + " at once");
  }
  FATHOM_ASSIGN(const bool add_bos,
                bool_field(body, is_content ? "add_special" : "add_special_tokens",
                           /*fallback=*/!is_content));
  return encode_raw(*services.model.tokenizer, *text->if_string(), add_bos);
}

Result<std::string> tokenize(const Services& services, const std::string& text) {
  FATHOM_ASSIGN(const JsonValue body, parse_body(text));
  FATHOM_ASSIGN(const bool with_texts, bool_field(body, "return_token_strs", false));
  FATHOM_ASSIGN(const std::vector<int32_t> ids, tokenize_ids(services, body));
  std::string out;
  codec::JsonWriter json(&out);
  json.begin_object().key("count").count(ids.size());
  json.key("max_model_len").integer(services.model.context_tokens).key("tokens").begin_array();
  for (const int32_t id : ids) json.integer(id);
  json.end_array().key("token_strs");
  if (with_texts) {
    json.begin_array();
    for (const int32_t id : ids) json.string(services.model.tokenizer->token_text(id));
    json.end_array();
  } else {
    json.null();
  }
  json.end_object();
  return out;
}

Result<std::string> detokenize(const Services& services, const std::string& text) {
  FATHOM_ASSIGN(const JsonValue body, parse_body(text));
  if (json_field(body, "tokens") == nullptr) {
    return Status(StatusCode::kInvalidArgument, "invalid request body: missing field `tokens`");
  }
  FATHOM_ASSIGN(const std::vector<int32_t> ids, ids_field(body, "tokens"));
  for (const int32_t id : ids) {
    if (id >= services.model.tokenizer->vocab_size()) {
      return Status(
          StatusCode::kInvalidArgument,
          "invalid request body: .tokens: " + std::to_string(id) + " is not in the vocabulary");
    }
  }
  const std::string decoded = services.model.tokenizer->decode(ids, /*skip_special=*/false);
  std::string out;
  codec::JsonWriter json(&out);
  // Under the names that vLLM's and llama.cpp's clients read.
  json.begin_object().member("prompt", decoded).member("content", decoded).end_object();
  return out;
}

using TextFunction = Result<std::string> (*)(const Services&, const std::string&);

Handler text_handler(const Services& services, TextFunction function) {
  return [&services, function](std::shared_ptr<Exchange> exchange) {
    on_codec_thread(services, std::move(exchange),
                    [&services, function](const std::shared_ptr<Exchange>& e) {
                      Result<std::string> out = function(services, e->request().body);
                      if (!out) return e->fail(prepare_error(out.error()));
                      e->reply(200, *std::move(out));
                    });
  };
}

}  // namespace

void add_model_routes(const Services& services, Router* router) {
  const ServedModel& model = services.model;
  router->add(
      {.method = "GET",
       .path = "/v1/models",
       .handler = [&model](const std::shared_ptr<Exchange>& e) { list_models(model, *e); }});
  router->add({.method = "GET",
               .path = "/v1/models/*",
               .handler = [&model](const std::shared_ptr<Exchange>& e) { show_model(model, *e); }});
  router->add({.method = "GET",
               .path = "/version",
               .handler =
                   [&model](const std::shared_ptr<Exchange>& e) {
                     std::string out;
                     codec::JsonWriter json(&out);
                     json.begin_object().member("version", model.program_version).end_object();
                     e->reply(200, std::move(out));
                   },
               .open = true});
  router->add({.method = "POST",
               .path = "/tokenize",
               .handler = text_handler(services, tokenize),
               .generates = true});
  router->add({.method = "POST",
               .path = "/detokenize",
               .handler = text_handler(services, detokenize),
               .generates = true});
}

}  // namespace fathom::server
