#include "prompt.h"

#include <unistd.h>

#include <charconv>

#include "codec/chat_request.h"
#include "codec/output_limit.h"
#include "failure.h"
#include "output.h"

namespace fathom::app {
namespace {

template <class T>
void keep_first(std::optional<T>& value, const std::optional<T>& second) {
  if (!value) value = second;
}

SamplingOptions sampling_of(const codec::ChatRequest& body) {
  SamplingOptions s;
  s.max_tokens = body.max_tokens;
  s.temperature = body.temperature;
  s.top_p = body.top_p;
  s.presence_penalty = body.presence_penalty;
  s.frequency_penalty = body.frequency_penalty;
  s.seed = body.seed;
  s.stop = body.stop;
  s.think = body.think;
  return s;
}

Result<Question> read_messages(const GenerateOptions& options) {
  const std::string& file = *options.messages_file;
  FATHOM_ASSIGN(const std::string json, read_text(file));
  FATHOM_ASSIGN(codec::ChatRequest body,
                codec::parse_chat_request(json, file == "-" ? "standard input" : file));
  Question q;
  q.kind = Question::Kind::kMessages;
  q.sampling = merge(options.sampling, sampling_of(body));
  q.messages = std::move(body.messages);
  return q;
}

Result<std::string> read_prompt(const GenerateOptions& options) {
  if (options.prompt && *options.prompt != "-") return *options.prompt;
  if (options.prompt_file) return read_text(*options.prompt_file);
  if (!options.prompt && isatty(STDIN_FILENO) != 0) {
    return wrong_use("no prompt; give --prompt TEXT, --file FILE, or text on standard input");
  }
  FATHOM_ASSIGN(std::string text, read_text("-"));
  // What a shell adds (echo, here-documents) is not part of the question.
  if (!options.raw && !text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

SamplingParams params_of(const Engine& engine, const SamplingOptions& s) {
  SamplingParams p;
  p.temperature = s.temperature.value_or(engine.default_temperature);
  p.top_p = s.top_p.value_or(engine.default_top_p);
  p.top_k = s.top_k.value_or(p.top_k);
  p.min_p = s.min_p.value_or(p.min_p);
  p.repetition_penalty = s.repetition_penalty.value_or(p.repetition_penalty);
  p.presence_penalty = s.presence_penalty.value_or(p.presence_penalty);
  p.frequency_penalty = s.frequency_penalty.value_or(p.frequency_penalty);
  p.logit_bias = s.logit_bias;
  p.seed = s.seed;
  p.logprobs = s.logprobs.value_or(p.logprobs);
  p.ignore_eos = s.ignore_eos.value_or(false);
  return p;
}

Result<std::vector<int32_t>> encode(const Engine& engine, const Question& q, codec::Think think) {
  if (q.kind == Question::Kind::kIds) return q.prompt_ids;
  if (q.kind != Question::Kind::kMessages) {
    if (q.prompt.empty()) return wrong_use("the prompt is empty; give some text");
    FATHOM_TRY(check_utf8(q.prompt, "the prompt"));
  }
  if (q.kind == Question::Kind::kRaw) return engine.tokenizer->encode(q.prompt, true);
  std::vector<codec::ChatMessage> messages;
  if (q.sampling.system) {
    messages.push_back({codec::Role::kSystem, *q.sampling.system, "", false});
  }
  messages.insert(messages.end(), q.messages.begin(), q.messages.end());
  if (q.kind == Question::Kind::kTurn) {
    messages.push_back({codec::Role::kUser, q.prompt, "", false});
  }
  return codec::encode_chat(*engine.tokenizer, messages, think);
}

}  // namespace

SamplingOptions merge(const SamplingOptions& first, const SamplingOptions& second) {
  SamplingOptions m = first;
  keep_first(m.max_tokens, second.max_tokens);
  keep_first(m.temperature, second.temperature);
  keep_first(m.top_p, second.top_p);
  keep_first(m.top_k, second.top_k);
  keep_first(m.min_p, second.min_p);
  keep_first(m.repetition_penalty, second.repetition_penalty);
  keep_first(m.presence_penalty, second.presence_penalty);
  keep_first(m.frequency_penalty, second.frequency_penalty);
  keep_first(m.seed, second.seed);
  keep_first(m.n, second.n);
  keep_first(m.logprobs, second.logprobs);
  keep_first(m.ignore_eos, second.ignore_eos);
  keep_first(m.think, second.think);
  keep_first(m.system, second.system);
  if (m.logit_bias.empty()) m.logit_bias = second.logit_bias;
  if (m.stop.empty()) m.stop = second.stop;
  return m;
}

Result<std::vector<int32_t>> parse_ids(std::string_view text) {
  std::vector<int32_t> ids;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at != end) {
    if (*at == ' ' || *at == ',' || *at == '\n') {
      ++at;
      continue;
    }
    int32_t id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc() || id < 0 ||
        (next != end && *next != ',' && *next != ' ' && *next != '\n')) {
      return wrong_use("token ids: \"" + std::string(at, std::min(at + 20, end)) +
                       "\" does not begin with an id; write 1,2,3");
    }
    ids.push_back(id);
    at = next;
  }
  return ids;
}

Result<Question> read_question(const GenerateOptions& options) {
  if (options.messages_file) return read_messages(options);
  Question q;
  q.sampling = options.sampling;
  if (options.prompt_ids) {
    q.kind = Question::Kind::kIds;
    FATHOM_ASSIGN(q.prompt_ids, parse_ids(*options.prompt_ids));
    return q;
  }
  if (options.raw) q.kind = Question::Kind::kRaw;
  FATHOM_ASSIGN(q.prompt, read_prompt(options));
  return q;
}

Result<PreparedQuestion> prepare(const Engine& engine, const Question& question) {
  const SamplingOptions& s = question.sampling;
  const codec::Think think = s.think.value_or(codec::Think::kOff);
  PreparedQuestion prepared;
  Request& request = prepared.request;
  FATHOM_ASSIGN(request.prompt, encode(engine, question, think));
  if (request.prompt.empty()) return wrong_use("the prompt is empty; give at least one token");
  request.params = params_of(engine, s);
  request.prefill = engine.prefill;
  FATHOM_ASSIGN(request.params.max_tokens,
                codec::resolve_max_tokens(static_cast<int64_t>(request.prompt.size()),
                                          engine.config().max_position_embeddings,
                                          s.max_tokens.value_or(0), think));
  const bool is_chat =
      question.kind == Question::Kind::kTurn || question.kind == Question::Kind::kMessages;
  prepared.thinking = is_chat && think != codec::Think::kOff;
  prepared.stop = s.stop;
  prepared.n = s.n.value_or(1);
  return prepared;
}

}  // namespace fathom::app
