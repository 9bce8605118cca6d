#include "prompt.h"

#include <unistd.h>

#include <charconv>

#include "codec/chat_file.h"
#include "codec/engine_constraint.h"
#include "codec/output_limit.h"
#include "codec/prompt.h"
#include "failure.h"
#include "images.h"
#include "output.h"

namespace fathom::app {
namespace {

template <class T>
void keep_first(std::optional<T>& value, const std::optional<T>& second) {
  if (!value) value = second;
}

SamplingOptions sampling_of(const codec::ChatFile& file) {
  const codec::InferenceOptions& inference = file.request.inference;
  SamplingOptions s;
  if (inference.max_tokens) s.max_tokens = static_cast<int32_t>(*inference.max_tokens);
  s.temperature = file.temperature;
  s.top_p = file.top_p;
  s.presence_penalty = inference.presence_penalty;
  s.frequency_penalty = inference.frequency_penalty;
  s.seed = inference.seed;
  s.stop = file.request.parsing.stop_sequences;
  s.think = file.think;
  return s;
}

Result<Question> read_messages(const GenerateOptions& options) {
  const std::string& file = *options.messages_file;
  FATHOM_ASSIGN(const std::string json, read_text(file));
  FATHOM_ASSIGN(codec::ChatFile body,
                codec::read_chat_file(json, file == "-" ? "standard input" : file));
  Question q;
  q.kind = Question::Kind::kMessages;
  q.images = options.images;
  q.sampling = merge(options.sampling, sampling_of(body));
  // A level on the command line wins over a number in the file.
  if (options.sampling.think) body.request.conversation.effort_level.reset();
  q.chat = std::move(body.request);
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

// A bad word as the model may write it: with and without a space before it.
Status add_bad_word(const Engine& engine, const std::string& text,
                    std::vector<std::vector<int32_t>>* out) {
  if (text.find_first_not_of(' ') == text.npos) {
    return wrong_use("a bad word must have more than spaces");
  }
  FATHOM_TRY(check_utf8(text, "a bad word"));
  const std::string bare = text.substr(text.find_first_not_of(' '));
  for (const std::string& spelling : {bare, " " + bare}) {
    std::vector<int32_t> ids = engine.tokenizer->encode(spelling, false);
    if (out->empty() || out->back() != ids) out->push_back(std::move(ids));
  }
  return Status();
}

// What the answer may be made of, and what the engine is told beside sampling.
Status set_limits(const Engine& engine, const SamplingOptions& s, Request* request) {
  SamplingParams& params = request->params;
  params.min_tokens = s.min_tokens.value_or(0);
  params.max_draft = s.max_draft.value_or(-1);
  params.allowed_ids = s.allowed_ids;
  params.bad_words = s.bad_word_ids;
  for (const std::string& word : s.bad_words) {
    FATHOM_TRY(add_bad_word(engine, word, &params.bad_words));
  }
  request->n = s.n.value_or(1);
  request->stop_ids = s.stop_ids;
  request->forced = s.forced_ids;
  request->prompt_logprobs = s.prompt_logprobs.value_or(-1);
  request->priority = s.priority.value_or(0);
  request->timeout_s = s.timeout_s;
  request->cache_salt = s.cache_salt.value_or("");
  return Status();
}

}  // namespace

Result<std::vector<codec::ToolDefinition>> read_tools(const std::string& file) {
  FATHOM_ASSIGN(const std::string text, read_text(file));
  FATHOM_ASSIGN(codec::ChatFile body,
                codec::read_chat_file(
                    R"({"messages":[{"role":"user","content":""}],"tools":)" + text + "}", file));
  return std::move(body.request.conversation.tools);
}

namespace {

// The question as a conversation, with what the options say about it.
Result<codec::Conversation> conversation_of(const Question& q) {
  const SamplingOptions& s = q.sampling;
  codec::Conversation conversation = q.chat.conversation;
  std::optional<int32_t> effort_level = conversation.effort_level;
  if (s.effort_level) effort_level = s.effort_level;
  codec::set_think(s.think.value_or(codec::Think::kOff), &conversation);
  if (conversation.thinking) conversation.effort_level = effort_level;
  if (s.system) {
    codec::InputMessage system;
    system.role = codec::Role::kSystem;
    system.content = *s.system;
    conversation.messages.insert(conversation.messages.begin(), std::move(system));
  }
  if (s.tools_file) {
    FATHOM_ASSIGN(conversation.tools, read_tools(*s.tools_file));
  }
  if (s.json_mode.value_or(false)) {
    conversation.response_format.kind = codec::ResponseFormat::Kind::kJsonObject;
  }
  if (q.kind == Question::Kind::kTurn) conversation.messages.emplace_back().content = q.prompt;
  return conversation;
}

Result<std::vector<int32_t>> encode(const Engine& engine, const Question& q,
                                    const codec::Conversation& conversation) {
  if (q.kind == Question::Kind::kIds) return q.prompt_ids;
  if (q.kind != Question::Kind::kMessages) {
    if (q.prompt.empty()) return wrong_use("the prompt is empty; give some text");
    FATHOM_TRY(check_utf8(q.prompt, "the prompt"));
  }
  if (q.kind == Question::Kind::kRaw) return engine.tokenizer->encode(q.prompt, true);
  FATHOM_ASSIGN(const codec::Prompt prompt, codec::render_prompt(conversation, {}));
  if (!prompt.images.empty()) FATHOM_TRY(check_images(prompt, q.images, engine.config()));
  return codec::encode_prompt(*engine.tokenizer, prompt);
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
  if (!m.think) keep_first(m.effort_level, second.effort_level);
  keep_first(m.think, second.think);
  keep_first(m.tools_file, second.tools_file);
  keep_first(m.json_mode, second.json_mode);
  keep_first(m.constraint, second.constraint);
  keep_first(m.system, second.system);
  keep_first(m.min_tokens, second.min_tokens);
  keep_first(m.max_draft, second.max_draft);
  keep_first(m.prompt_logprobs, second.prompt_logprobs);
  keep_first(m.priority, second.priority);
  keep_first(m.timeout_s, second.timeout_s);
  keep_first(m.cache_salt, second.cache_salt);
  if (m.bad_words.empty() && m.bad_word_ids.empty()) {
    m.bad_words = second.bad_words;
    m.bad_word_ids = second.bad_word_ids;
  }
  if (m.allowed_ids.empty()) m.allowed_ids = second.allowed_ids;
  if (m.stop_ids.empty()) m.stop_ids = second.stop_ids;
  if (m.forced_ids.empty()) m.forced_ids = second.forced_ids;
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
  codec::ConversationRequest chat = question.chat;
  FATHOM_ASSIGN(chat.conversation, conversation_of(question));
  PreparedQuestion prepared;
  Request& request = prepared.request;
  const bool is_chat =
      question.kind == Question::Kind::kTurn || question.kind == Question::Kind::kMessages;
  // Before the prompt: a schema stands in it, and one that is refused need not be encoded.
  if (is_chat) {
    codec::set_parsing(chat.conversation, &chat.parsing);
    prepared.form.chat = codec::OutputStream::options_of(chat);
    FATHOM_ASSIGN(request.constraint, codec::engine_constraint(chat, *engine.tokenizer));
  }
  if (s.constraint) {
    request.constraint = *s.constraint;
    if (is_chat && codec::begins_thinking(chat.conversation)) {
      request.constraint.starts_after = engine.tokenizer->find("</think>").value_or(-1);
    } else if (is_chat) {
      request.constraint.begun = codec::begun_answer(chat.conversation);
    }
  }
  FATHOM_ASSIGN(request.prompt, encode(engine, question, chat.conversation));
  if (request.prompt.empty()) return wrong_use("the prompt is empty; give at least one token");
  request.params = params_of(engine, s);
  request.prefill = engine.prefill;
  chat.inference.max_tokens.reset();
  if (s.max_tokens) chat.inference.max_tokens = static_cast<uint32_t>(*s.max_tokens);
  FATHOM_ASSIGN(const uint32_t max_tokens,
                codec::resolve_max_tokens(chat, codec::ConvertOptions(),
                                          static_cast<int64_t>(request.prompt.size()),
                                          engine.config().max_position_embeddings));
  request.params.max_tokens = static_cast<int32_t>(max_tokens);
  prepared.form.stop = s.stop;
  FATHOM_TRY(set_limits(engine, s, &request));
  return prepared;
}

}  // namespace fathom::app
