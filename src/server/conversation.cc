#include "server/conversation.h"

#include <chrono>

#include "codec/json_text.h"
#include "server/conversation_answer.h"
#include "server/ids.h"
#include "server/json_fields.h"
#include "server/known_fields.h"
#include "server/prepare.h"

namespace fathom::server {
namespace {

using codec::JsonArray;
using codec::JsonObject;
using codec::JsonValue;
using codec::Protocol;
using Clock = std::chrono::steady_clock;

double now_s() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

Api api_of(Protocol protocol) {
  switch (protocol) {
    case Protocol::kChatCompletions:
      return Api::kChat;
    case Protocol::kResponses:
      return Api::kResponses;
    case Protocol::kMessages:
      break;
  }
  return Api::kMessages;
}

std::string_view id_prefix(Protocol protocol) {
  switch (protocol) {
    case Protocol::kChatCompletions:
      return "chatcmpl-";
    case Protocol::kResponses:
      return "resp_";
    case Protocol::kMessages:
      break;
  }
  return "msg_";
}

// What a response is kept as: the items before it, and whether it is kept at all.
struct ResponseHistory {
  std::string items;  // JSON array
  bool store = false;
};

// Puts the items of the response that the request goes on from before its own.
Result<ResponseHistory> resolve_history(const Services& services, std::string_view owner,
                                        JsonValue* body) {
  ResponseHistory history;
  FATHOM_ASSIGN(history.store, bool_field(*body, "store", true));
  JsonArray items;
  if (const JsonValue* previous = json_field(*body, "previous_response_id")) {
    const std::string* id = previous->if_string();
    const auto stored = id == nullptr ? std::nullopt : services.responses.get(owner, *id, now_s());
    if (!stored) {
      return Status(StatusCode::kNotFound, "Previous response with id '" +
                                               (id == nullptr ? std::string("?") : *id) +
                                               "' not found.");
    }
    FATHOM_ASSIGN(JsonValue before, codec::parse_json(stored->items));
    items = std::move(*before.if_array());
  }
  if (const JsonValue* input = json_field(*body, "input")) {
    if (const std::string* text = input->if_string()) {
      JsonObject message;
      message.append("role", "user");
      message.append("content", *text);
      items.emplace_back(std::move(message));
    } else if (const JsonArray* more = input->if_array()) {
      items.insert(items.end(), more->begin(), more->end());
    } else {
      return history;  // of a wrong type: the codec says so
    }
  }
  if (items.empty()) return history;
  if (history.store)
    history.items = codec::write_json(JsonValue(items), codec::JsonStyle::kCompact);
  body->if_object()->set("input", JsonValue(std::move(items)));
  return history;
}

ConversationAnswer::OnWhole keep_response(const Services& services, std::string owner,
                                          std::string id, ResponseHistory history) {
  return [&services, owner = std::move(owner), id = std::move(id),
          history = std::move(history)](const std::string& json) {
    const Result<JsonValue> response = codec::parse_json(json);
    const JsonValue* output = response ? response->find("output") : nullptr;
    if (output == nullptr || output->if_array() == nullptr) return;
    std::string items = history.items.empty() ? "[]" : history.items;
    std::string more = codec::write_json(*output, codec::JsonStyle::kCompact);
    if (more != "[]") {
      items.pop_back();
      if (items.size() > 1) items += ',';
      items.append(more, 1, more.npos);
    }
    services.responses.put(owner, id, {.items = std::move(items), .response = json}, now_s());
  };
}

Result<JsonValue> read_body(const Services& services, Exchange& exchange, std::string* model) {
  FATHOM_ASSIGN(JsonValue body, parse_body(exchange.request().body));
  std::string().swap(exchange.request().body);
  FATHOM_ASSIGN(*model, services.model_name(body));
  return body;
}

void answer(const Services& services, Protocol protocol, const std::shared_ptr<Exchange>& exchange,
            const std::shared_ptr<ClientWatch>& watch, Clock::time_point arrived) {
  codec::AnswerInfo info;
  info.id = random_id(id_prefix(protocol));
  info.created = unix_seconds();
  Result<JsonValue> body = read_body(services, *exchange, &info.model);
  if (!body) return exchange->fail(prepare_error(body.error()));
  if (const auto refused = refused_field(api_of(protocol), *body)) return exchange->fail(*refused);
  if (const Status status = take_template_arguments(&*body); !status.ok()) {
    return exchange->fail(prepare_error(status));
  }
  ConversationAnswer::OnWhole on_whole;
  if (protocol == Protocol::kResponses) {
    Result<ResponseHistory> history = resolve_history(services, exchange->key(), &*body);
    if (!history) {
      ApiError error = api_error(history.error());
      if (error.status == 404) {
        error = {.status = 400,
                 .message = error.message,
                 .code = "previous_response_not_found",
                 .param = "previous_response_id"};
      }
      return exchange->fail(error);
    }
    if (const JsonValue* previous = json_field(*body, "previous_response_id")) {
      info.previous_response_id = *previous->if_string();
      body->if_object()->erase("previous_response_id");  // the codec keeps no responses
    }
    info.stored = history->store;
    if (history->store) {
      on_whole = keep_response(services, exchange->key(), info.id, *std::move(history));
    }
  }
  Result<PreparedConversation> prepared = prepare_conversation(services, protocol, &*body);
  if (!prepared) return exchange->fail(prepare_error(prepared.error()));
  auto conversation = std::make_shared<ConversationAnswer>(services, exchange, protocol, *prepared,
                                                           *body, info, std::move(on_whole));
  const double prepare_s = std::chrono::duration<double>(Clock::now() - arrived).count();
  start_answer(services, exchange, watch, std::move(prepared->request), std::move(conversation),
               prepared->chat.stream, prepare_s);
}

Handler answer_handler(const Services& services, Protocol protocol) {
  return [&services, protocol](std::shared_ptr<Exchange> exchange) {
    auto watch = watch_client(services, *exchange);
    const auto arrived = Clock::now();
    on_codec_thread(services, std::move(exchange),
                    [&services, protocol, watch, arrived](const std::shared_ptr<Exchange>& e) {
                      answer(services, protocol, e, watch, arrived);
                    });
  };
}

void count_tokens(const Services& services, const std::shared_ptr<Exchange>& exchange) {
  std::string model;
  Result<JsonValue> body = read_body(services, *exchange, &model);
  if (!body) return exchange->fail(prepare_error(body.error()));
  Result<codec::ConversationRequest> chat = read_conversation(services, Protocol::kMessages, *body);
  if (!chat) return exchange->fail(prepare_error(chat.error()));
  Request request;
  if (const Status status = encode_conversation(services, *chat, &request); !status.ok()) {
    return exchange->fail(prepare_error(status));
  }
  exchange->reply(200, "{\"input_tokens\":" + std::to_string(request.prompt.size()) + "}");
}

// GET and DELETE of /v1/responses/ID.
void stored_response(const Services& services, const std::shared_ptr<Exchange>& exchange,
                     bool erase) {
  const std::string id = exchange->request().path.substr(std::string_view("/v1/responses/").size());
  const auto stored = services.responses.get(exchange->key(), id, now_s());
  if (!stored) {
    return exchange->fail({.status = 404, .message = "Response with id '" + id + "' not found."});
  }
  if (!erase) return exchange->reply(200, stored->response);
  services.responses.erase(exchange->key(), id);
  JsonObject deleted;
  deleted.append("id", id);
  deleted.append("object", "response.deleted");
  deleted.append("deleted", true);
  exchange->reply(200,
                  codec::write_json(JsonValue(std::move(deleted)), codec::JsonStyle::kCompact));
}

}  // namespace

void add_conversation_routes(const Services& services, Router* router) {
  router->add({.method = "POST",
               .path = "/v1/chat/completions",
               .handler = answer_handler(services, Protocol::kChatCompletions),
               .generates = true});
  router->add({.method = "POST",
               .path = "/v1/responses",
               .handler = answer_handler(services, Protocol::kResponses),
               .generates = true});
  router->add({.method = "POST",
               .path = "/v1/messages",
               .handler = answer_handler(services, Protocol::kMessages),
               .generates = true,
               .dialect = Dialect::kAnthropic});
  router->add({.method = "POST",
               .path = "/v1/messages/count_tokens",
               .handler =
                   [&services](std::shared_ptr<Exchange> exchange) {
                     on_codec_thread(services, std::move(exchange),
                                     [&services](const std::shared_ptr<Exchange>& e) {
                                       count_tokens(services, e);
                                     });
                   },
               .generates = true,
               .dialect = Dialect::kAnthropic});
  for (const bool erase : {false, true}) {
    router->add({.method = erase ? "DELETE" : "GET",
                 .path = "/v1/responses/*",
                 .handler = [&services, erase](std::shared_ptr<Exchange> exchange) {
                   stored_response(services, exchange, erase);
                 }});
  }
}

}  // namespace fathom::server
