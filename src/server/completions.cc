#include "server/completions.h"

#include <chrono>

#include "server/completion_answer.h"
#include "server/ids.h"
#include "server/json_fields.h"
#include "server/known_fields.h"
#include "server/prepare.h"
#include "server/raw_prompt.h"

namespace fathom::server {
namespace {

using codec::JsonArray;
using codec::JsonValue;
using Clock = std::chrono::steady_clock;

constexpr size_t kMaxPrompts = 64;
constexpr int64_t kDefaultMaxTokens = 16;
constexpr int64_t kMaxLogprobs = 20;

Status bad_request(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

struct Completion {
  CompletionOptions options;
  std::vector<CompletionPrompt> prompts;
  Request request;  // without a prompt
  int32_t n = 1;
  std::vector<int32_t> max_tokens;  // of each prompt
};

Status read_stop(const JsonValue& body, CompletionOptions* options) {
  FATHOM_ASSIGN(options->stop, strings_field(body, "stop"));
  Result<codec::StopStringFinder> finder = codec::StopStringFinder::create(options->stop);
  if (!finder) return std::move(finder).error().with_context("stop");
  return Status();
}

Status read_stream(const JsonValue& body, CompletionOptions* options) {
  FATHOM_ASSIGN(options->stream, bool_field(body, "stream", false));
  const JsonValue* stream_options = json_field(body, "stream_options");
  if (stream_options == nullptr) return Status();
  if (!options->stream) {
    return bad_request("stream_options should be set along with stream = true");
  }
  FATHOM_ASSIGN(options->include_usage, bool_field(*stream_options, "include_usage", false));
  return Status();
}

Status read_sampling(const Services& services, const JsonValue& body, Completion* out) {
  Request& request = out->request;
  SamplingParams& params = request.params;
  FATHOM_TRY(read_engine_fields(*services.model.tokenizer, body, &request));
  FATHOM_ASSIGN(const auto temperature, number_field(body, "temperature", 0, 2));
  params.temperature = static_cast<float>(temperature.value_or(1));
  FATHOM_ASSIGN(const auto top_p, number_field(body, "top_p", 1e-6, 1));
  params.top_p = static_cast<float>(top_p.value_or(1));
  FATHOM_ASSIGN(const auto presence, number_field(body, "presence_penalty", -2, 2));
  params.presence_penalty = static_cast<float>(presence.value_or(0));
  FATHOM_ASSIGN(const auto frequency, number_field(body, "frequency_penalty", -2, 2));
  params.frequency_penalty = static_cast<float>(frequency.value_or(0));
  FATHOM_ASSIGN(const auto seed, integer_field(body, "seed", INT64_MIN, INT64_MAX));
  if (seed) params.seed = static_cast<uint64_t>(*seed) & INT64_MAX;
  FATHOM_ASSIGN(const auto logprobs, integer_field(body, "logprobs", 0, kMaxLogprobs));
  if (logprobs) {
    out->options.logprobs = static_cast<int32_t>(*logprobs);
    params.logprobs = *out->options.logprobs;
    if (out->options.echo) request.prompt_logprobs = *out->options.logprobs;
  }
  return Status();
}

Status read_counts(const Services& services, const JsonValue& body, Completion* out) {
  FATHOM_ASSIGN(const auto n, integer_field(body, "n", 1, services.options.max_n));
  out->n = static_cast<int32_t>(n.value_or(1));
  out->request.n = out->n;
  FATHOM_ASSIGN(std::optional<int64_t> max_tokens, integer_field(body, "max_tokens", 0, INT32_MAX));
  if (!max_tokens) max_tokens = kDefaultMaxTokens;
  out->options.drop_output = *max_tokens == 0;
  for (const CompletionPrompt& prompt : out->prompts) {
    FATHOM_ASSIGN(const int32_t limit,
                  fit_max_tokens(services, static_cast<int64_t>(prompt.ids.size()),
                                 std::max<int64_t>(*max_tokens, 1)));
    out->max_tokens.push_back(limit);
  }
  return Status();
}

Status check_texts_fit(const Services& services, const JsonValue& prompt) {
  if (const std::string* text = prompt.if_string()) return check_text_fits(services, text->size());
  const JsonArray* list = prompt.if_array();
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const std::string* text = (*list)[i].if_string();
    if (text != nullptr) FATHOM_TRY(check_text_fits(services, text->size()));
  }
  return Status();
}

Result<Completion> read_completion(const Services& services, const JsonValue& body) {
  Completion out;
  FATHOM_ASSIGN(out.options.echo, bool_field(body, "echo", false));
  FATHOM_TRY(read_stop(body, &out.options));
  FATHOM_TRY(read_stream(body, &out.options));
  FATHOM_TRY(read_sampling(services, body, &out));
  FATHOM_TRY(settle_constraint(services, body, &out.request));
  FATHOM_ASSIGN(const bool add_bos, bool_field(body, "add_special_tokens", true));
  const JsonValue* prompt = json_field(body, "prompt");
  if (prompt == nullptr) return bad_request("invalid request body: missing field `prompt`");
  FATHOM_TRY(check_texts_fit(services, *prompt));
  FATHOM_ASSIGN(std::vector<RawPrompt> prompts,
                read_raw_prompts(*services.model.tokenizer, *prompt, add_bos, kMaxPrompts));
  for (RawPrompt& raw : prompts) {
    out.prompts.push_back({.ids = std::move(raw.ids), .text = std::move(raw.text)});
  }
  FATHOM_TRY(read_counts(services, body, &out));
  const double timeout_s = services.options.request_timeout_s;
  if (timeout_s > 0) out.request.timeout_s = timeout_s;
  return out;
}

void answer(const Services& services, const std::shared_ptr<Exchange>& exchange,
            const std::shared_ptr<ClientWatch>& watch, Clock::time_point arrived) {
  Result<JsonValue> body = parse_body(exchange->request().body);
  if (!body) return exchange->fail(prepare_error(body.error()));
  std::string().swap(exchange->request().body);
  Result<std::string> model = services.model_name(*body);
  if (!model) return exchange->fail(prepare_error(model.error()));
  if (const auto refused = refused_field(Api::kCompletions, *body)) return exchange->fail(*refused);
  Result<Completion> completion = read_completion(services, *body);
  if (!completion) return exchange->fail(prepare_error(completion.error()));
  completion->options.id = random_id("cmpl-");
  completion->options.model = *std::move(model);
  completion->options.created = unix_seconds();
  std::vector<Request> requests(completion->prompts.size(), completion->request);
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt = completion->prompts[i].ids;
    requests[i].params.max_tokens = completion->max_tokens[i];
  }
  const bool stream = completion->options.stream;
  auto shared =
      std::make_shared<CompletionAnswer>(services, exchange, std::move(completion->options),
                                         std::move(completion->prompts), completion->n);
  const auto n = static_cast<size_t>(completion->n);
  std::vector<std::pair<Request, std::shared_ptr<Generation>>> generations;
  for (size_t i = 0; i < requests.size(); ++i) {
    generations.emplace_back(std::move(requests[i]),
                             std::make_shared<CompletionPart>(shared, i * n, n));
  }
  shared.reset();
  const double prepare_s = std::chrono::duration<double>(Clock::now() - arrived).count();
  if (start_generations(services, exchange, watch, prepare_s, std::move(generations)) && stream) {
    exchange->begin_events();
  }
}

}  // namespace

void add_completion_routes(const Services& services, Router* router) {
  router->add({.method = "POST",
               .path = "/v1/completions",
               .handler =
                   [&services](std::shared_ptr<Exchange> exchange) {
                     auto watch = watch_client(services, *exchange);
                     const auto arrived = Clock::now();
                     on_codec_thread(
                         services, std::move(exchange),
                         [&services, watch, arrived](const std::shared_ptr<Exchange>& e) {
                           answer(services, e, watch, arrived);
                         });
                   },
               .generates = true});
}

}  // namespace fathom::server
