#include "server/completion_answer.h"

#include <algorithm>

#include "codec/json_text.h"
#include "codec/output/answer_writer.h"
#include "codec/unicode_utf8.h"

namespace fathom::server {
namespace {

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

CompletionAnswer::CompletionAnswer(const Services& services, std::shared_ptr<Exchange> exchange,
                                   CompletionOptions options, std::vector<CompletionPrompt> prompts,
                                   int32_t n)
    : Answer(std::move(exchange), options.stream),
      tokenizer_(*services.model.tokenizer),
      fingerprint_(services.model.fingerprint),
      options_(std::move(options)),
      prompts_(std::move(prompts)) {
  for (size_t p = 0; p < prompts_.size(); ++p) {
    for (int32_t i = 0; i < n; ++i) {
      choices_.push_back({.prompt = p,
                          .detokenizer = codec::Detokenizer(tokenizer_, /*skip_special=*/true),
                          .stop = *codec::StopStringFinder::create(options_.stop),
                          .text = {},
                          .logprobs = {},
                          .finish = {}});
    }
  }
  left_ = choices_.size();
}

// Tokens that are no UTF-8 by themselves are shown by their bytes, as OpenAI does.
std::string CompletionAnswer::token_text(int32_t id) const {
  constexpr std::string_view kHex = "0123456789abcdef";
  const std::string_view bytes = tokenizer_.token_bytes(id);
  if (codec::valid_utf8_prefix(bytes) == bytes.size()) return std::string(bytes);
  std::string text = "bytes:";
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += "\\x";
    text += kHex[value >> 4];
    text += kHex[value & 15];
  }
  return text;
}

void CompletionAnswer::note_logprob(int32_t id, std::optional<float> value,
                                    const std::vector<TokenLogprob>& top, Choice* choice) const {
  Logprobs& logprobs = choice->logprobs;
  logprobs.tokens.push_back(token_text(id));
  logprobs.values.push_back(value);
  logprobs.top.push_back(top);
  logprobs.offsets.push_back(choice->characters);
}

// What stands before the first token: the prompt, if it is asked for.
void CompletionAnswer::begin(const TokenEvent& event, Choice* choice) {
  const CompletionPrompt& prompt = prompts_[choice->prompt];
  if (!choice->begun && options_.echo) choice->text = prompt.text;
  const bool scored = options_.echo && options_.logprobs;
  const auto note = [&](int32_t id, std::optional<float> value,
                        const std::vector<TokenLogprob>& top) {
    note_logprob(id, value, top, choice);
    choice->characters += count_characters(tokenizer_.decode({&id, 1}, /*skip_special=*/false));
  };
  if (!choice->begun && scored) note(prompt.ids[0], std::nullopt, {});
  choice->begun = true;
  if (!scored) return;
  for (const PromptLogprob& p : event.prompt_logprobs) note(p.token.id, p.token.logprob, p.top);
}

void CompletionAnswer::add_token(const TokenEvent& event, Choice* choice) {
  if (options_.drop_output) return;
  ++completion_tokens_;
  const bool is_end = event.finish == FinishReason::kStop;  // the end token has no text
  const std::string text = is_end ? std::string() : choice->detokenizer.push(event.token);
  if (options_.logprobs && !is_end) note_logprob(event.token, event.logprob, event.top, choice);
  choice->characters += count_characters(text);
  choice->text += choice->stop.push(text);
}

void CompletionAnswer::end(const char* reason, Choice* choice) {
  choice->text += choice->stop.push(choice->detokenizer.flush());
  choice->text += choice->stop.finish();
  choice->finish = choice->stop.matched() ? "stop" : reason;
  --left_;
}

void CompletionAnswer::take_event(const TokenEvent& event, size_t index) {
  if (done() || choices_[index].finish) return;
  Choice& choice = choices_[index];
  if (event.finish == FinishReason::kError || event.finish == FinishReason::kCancelled) {
    return fail(finish_error(event));
  }
  if (!choice.begun || !event.prompt_logprobs.empty()) begin(event, &choice);
  if (event.token >= 0) add_token(event, &choice);
  cached_tokens_ += event.cached_tokens;
  if (event.finish == FinishReason::kStop || choice.stop.matched()) {
    end("stop", &choice);
  } else if (event.finish == FinishReason::kLength) {
    end("length", &choice);
  }
  if (options_.stream) send(index);
  if (left_ == 0) complete();
}

void CompletionAnswer::send(size_t index) {
  Choice& choice = choices_[index];
  if (choice.text.empty() && choice.logprobs.tokens.empty() && !choice.finish) return;
  std::string chunk;
  write_head(&chunk);
  chunk += "\"choices\":[";
  write_choice(index, &chunk);
  chunk += options_.include_usage ? "],\"usage\":null}" : "]}";
  add_events(codec::server_sent_event({"", std::move(chunk)}));
  choice.text.clear();
  choice.logprobs = {};
}

void CompletionAnswer::write_head(std::string* out) const {
  codec::JsonWriter json(out);
  json.begin_object().member("id", options_.id).member("object", "text_completion");
  json.key("created").integer(options_.created).member("model", options_.model);
  json.member("system_fingerprint", fingerprint_);
  *out += ',';
}

void CompletionAnswer::write_choice(size_t index, std::string* out) const {
  const Choice& choice = choices_[index];
  codec::JsonWriter json(out);
  json.begin_object().key("index").count(index).member("text", choice.text).key("logprobs");
  if (options_.logprobs) {
    const Logprobs& l = choice.logprobs;
    json.begin_object().key("tokens").begin_array();
    for (const std::string& token : l.tokens) json.string(token);
    json.end_array().key("token_logprobs").begin_array();
    for (const auto& value : l.values) {
      value ? json.number(static_cast<double>(*value)) : json.null();
    }
    json.end_array().key("top_logprobs").begin_array();
    for (size_t i = 0; i < l.top.size(); ++i) {
      if (!l.values[i]) {
        json.null();
        continue;
      }
      codec::JsonObject top;
      for (const TokenLogprob& t : l.top[i]) {
        top.set(token_text(t.id), static_cast<double>(t.logprob));
      }
      json.value(codec::JsonValue(std::move(top)));
    }
    json.end_array().key("text_offset").begin_array();
    for (const size_t offset : l.offsets) json.count(offset);
    json.end_array().end_object();
  } else {
    json.null();
  }
  json.key("finish_reason");
  choice.finish ? json.string(*choice.finish) : json.null();
  json.end_object();
}

std::string CompletionAnswer::usage() const {
  uint64_t prompt_tokens = 0;
  for (const CompletionPrompt& prompt : prompts_) prompt_tokens += prompt.ids.size();
  const auto completion = static_cast<uint64_t>(completion_tokens_);
  std::string out;
  codec::JsonWriter json(&out);
  json.begin_object().key("prompt_tokens").count(prompt_tokens);
  json.key("completion_tokens").count(completion);
  json.key("total_tokens").count(prompt_tokens + completion);
  json.key("prompt_tokens_details").begin_object().key("cached_tokens");
  json.count(std::min(static_cast<uint64_t>(cached_tokens_), prompt_tokens));
  json.end_object().end_object();
  return out;
}

std::string CompletionAnswer::whole() {
  std::string out;
  write_head(&out);
  out += "\"choices\":[";
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (i > 0) out += ',';
    write_choice(i, &out);
  }
  out += "],\"usage\":" + usage() + "}";
  return out;
}

std::string CompletionAnswer::last_event() {
  std::string out;
  if (options_.include_usage) {
    std::string chunk;
    write_head(&chunk);
    chunk += "\"choices\":[],\"usage\":" + usage() + "}";
    out = codec::server_sent_event({"", std::move(chunk)});
  }
  return out + codec::server_sent_event({"", "[DONE]"});
}

}  // namespace fathom::server
