#include "chat_session.h"

#include <charconv>
#include <cstdio>
#include <utility>

#include "codec/chat_file.h"
#include "decode_rate.h"
#include "failure.h"
#include "interrupt.h"
#include "option_values.h"
#include "output.h"
#include "terminal_text.h"

namespace fathom::app {
namespace {

constexpr std::string_view kHelp =
    R"(/system TEXT     set the system message (without TEXT: remove it)
/think LEVEL     reason before answering: off, low, high, xhigh, max or 1-100
/fold            show the length of the reasoning only, or all of it again
/tools FILE      tools that the model may call: a JSON list as in Chat Completions (without FILE:
                 none); after a call the next line is its result
/json            ask for answers that are JSON objects, or for text again
/reset           forget the conversation
/retry           answer the last question again
/undo            forget the last question and its answer
/save FILE       write the conversation as JSON (fathom generate --messages reads it)
/load FILE       go on with a conversation of such a file
/params          show the settings
/set NAME VALUE  temperature, top_p, top_k, min_p, max_tokens, seed, repetition_penalty,
                 presence_penalty, frequency_penalty, stop; without VALUE: back to the default
/exit            leave (or ctrl-D)
A line that ends in \ goes on in the next; """ begins and ends a text of several lines.
Ctrl-C stops an answer.)";

codec::InputMessage message(codec::Role role, std::string content) {
  codec::InputMessage out;
  out.role = role;
  out.content = std::move(content);
  return out;
}

template <class Number>
std::string set_number(std::string_view name, std::string_view value, std::optional<Number>* out) {
  Number number{};
  const char* end = value.data() + value.size();
  const auto [at, error] = std::from_chars(value.data(), end, number);
  if (value.empty()) {
    out->reset();
    return std::string(name) + " is back at its default";
  }
  if (error != std::errc() || at != end) {
    return std::string(name) + " needs a number, not \"" + std::string(value) + "\"";
  }
  *out = number;
  return std::string(name) + " is " + std::string(value);
}

void write_calls(const std::vector<codec::ToolCall>& calls, JsonWriter& json) {
  json.key("tool_calls").begin_array();
  for (const codec::ToolCall& call : calls) {
    json.begin_object().member("id", call.id).member("type", "function");
    json.key("function").begin_object().member("name", call.name);
    json.member("arguments", call.arguments).end_object().end_object();
  }
  json.end_array();
}

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

// "word rest" -> word; leaves the rest.
std::string_view take_word(std::string_view* text) {
  const size_t space = std::min(text->find(' '), text->size());
  const std::string_view word = text->substr(0, space);
  *text = trim(text->substr(space));
  return word;
}

// Results follow their calls in order.
const codec::ToolCall* first_open_call(const std::vector<codec::InputMessage>& messages) {
  size_t num_results = 0;
  for (auto it = messages.rbegin(); it != messages.rend(); ++it) {
    if (it->role == codec::Role::kAssistant) {
      return num_results < it->tool_calls.size() ? &it->tool_calls[num_results] : nullptr;
    }
    if (it->role != codec::Role::kTool) return nullptr;
    ++num_results;
  }
  return nullptr;
}

void print_statistics(const Answer& answer) {
  const size_t tokens = answer.token_ids().size();
  const std::string rate =
      decode_rate(", ", static_cast<int64_t>(tokens) - 1, answer.ttft_ms(), answer.e2e_ms());
  std::fprintf(stderr, "[%lld + %zu tokens, first after %.0f ms%s]\n",
               static_cast<long long>(answer.num_prompt_tokens()), tokens, answer.ttft_ms(),
               rate.c_str());
}

}  // namespace

const codec::ToolCall* ChatSession::open_call() const { return first_open_call(messages_); }

Status ChatSession::ask(const std::string& text, bool show_statistics) {
  FATHOM_TRY(check_utf8(text, "the message"));
  Question question;
  question.kind = Question::Kind::kMessages;
  question.sampling = sampling_;
  question.chat.stream = true;
  question.chat.conversation = loaded_;
  std::vector<codec::InputMessage>& messages = question.chat.conversation.messages;
  messages = messages_;
  const codec::ToolCall* call = open_call();
  messages.push_back(message(call != nullptr ? codec::Role::kTool : codec::Role::kUser, text));
  if (call != nullptr) messages.back().tool_call_id = call->id;
  if (first_open_call(messages) != nullptr) {
    messages_ = std::move(messages);
    return Status();
  }
  FATHOM_ASSIGN(const PreparedQuestion prepared, prepare(engine_, question));
  std::optional<Answer> answer;
  FATHOM_TRY(generate(prepared, &answer));
  if (!answer->error().ok()) return answer->error();
  messages_ = std::move(messages);
  messages_.push_back(message(codec::Role::kAssistant, answer->text()));
  messages_.back().reasoning_content = answer->reasoning();
  for (const codec::ParsedCall& made : answer->calls()) {
    messages_.back().tool_calls.push_back({made.id, made.name, made.arguments});
  }
  if (show_statistics) print_statistics(*answer);
  if (answer->finish() == FinishReason::kLength) {
    std::fputs(
        "[the answer is cut: max_tokens or the context is used up; see /set, /undo, /reset]\n",
        stderr);
  }
  return Status();
}

Status ChatSession::generate(const PreparedQuestion& question, std::optional<Answer>* answer) {
  clear_interrupt();
  FATHOM_TRY(loop_.submit(0, question));
  TerminalText terminal(fold_);
  Status output;
  bool cancelled = false;
  while (!loop_.idle()) {
    if (!cancelled && (interrupted() || !output.ok())) {
      loop_.cancel_all();
      cancelled = true;
    }
    for (AnswerLoop::Finished& f : loop_.step([&](int64_t, const codec::OutputEvent& event) {
           if (output.ok() && !cancelled) output = terminal.show(event);
         })) {
      answer->emplace(std::move(f.answer));
    }
  }
  FATHOM_TRY(std::move(output));
  return terminal.end();
}

std::optional<std::string> ChatSession::undo() {
  while (!messages_.empty()) {
    const codec::InputMessage last = std::move(messages_.back());
    messages_.pop_back();
    if (last.role == codec::Role::kUser) return last.content;
  }
  return std::nullopt;
}

std::string ChatSession::set(std::string_view name, std::string_view value) {
  SamplingOptions next = sampling_;
  std::string reply;
  if (name == "temperature") {
    reply = set_number(name, value, &next.temperature);
  } else if (name == "top_p") {
    reply = set_number(name, value, &next.top_p);
  } else if (name == "top_k") {
    reply = set_number(name, value, &next.top_k);
  } else if (name == "min_p") {
    reply = set_number(name, value, &next.min_p);
  } else if (name == "max_tokens") {
    reply = set_number(name, value, &next.max_tokens);
  } else if (name == "seed") {
    reply = set_number(name, value, &next.seed);
  } else if (name == "repetition_penalty") {
    reply = set_number(name, value, &next.repetition_penalty);
  } else if (name == "presence_penalty") {
    reply = set_number(name, value, &next.presence_penalty);
  } else if (name == "frequency_penalty") {
    reply = set_number(name, value, &next.frequency_penalty);
  } else if (name == "stop") {
    next.stop.clear();
    if (!value.empty()) next.stop.emplace_back(value);
    reply = value.empty() ? "no stop text" : "answers end before \"" + std::string(value) + "\"";
  } else {
    return "no setting is called \"" + std::string(name) + "\"; /help lists them";
  }
  // Ranges are those of every request.
  Question probe;
  probe.prompt = "x";
  probe.sampling = next;
  const Result<PreparedQuestion> prepared = prepare(engine_, probe);
  const Status status =
      !prepared ? prepared.error() : prepared->request.params.validate(engine_.config().vocab_size);
  if (!status.ok()) return status.message();
  sampling_ = next;
  return reply;
}

std::string ChatSession::show_params() const {
  std::string text = "model " + engine_.dir.string();
  text += "\nthink " + std::string(think_name(sampling_.think.value_or(codec::Think::kOff)));
  const auto add = [&text](const char* name, const auto& value, const char* otherwise) {
    JsonWriter json;
    if (value) json.value(*value);
    text += "\n" + std::string(name) + " " + (value ? json.text() : otherwise);
  };
  add("system", sampling_.system, "none");
  add("tools", sampling_.tools_file, loaded_.tools.empty() ? "none" : "of the loaded file");
  add("json", sampling_.json_mode, "false");
  JsonWriter temperature;
  temperature.value(engine_.default_temperature);
  JsonWriter top_p;
  top_p.value(engine_.default_top_p);
  add("temperature", sampling_.temperature, temperature.text().c_str());
  add("top_p", sampling_.top_p, top_p.text().c_str());
  add("top_k", sampling_.top_k, "all");
  add("min_p", sampling_.min_p, "0");
  add("max_tokens", sampling_.max_tokens, "what the model's default and the context allow");
  add("seed", sampling_.seed, "a new one for each answer");
  add("repetition_penalty", sampling_.repetition_penalty, "1");
  add("presence_penalty", sampling_.presence_penalty, "0");
  add("frequency_penalty", sampling_.frequency_penalty, "0");
  text += "\nmessages " + std::to_string(messages_.size());
  return text;
}

std::string ChatSession::set_tools(const std::string& file) {
  if (file.empty()) {
    sampling_.tools_file.reset();
    loaded_.tools.clear();
    return "no tools";
  }
  const Result<std::vector<codec::ToolDefinition>> tools = read_tools(file);
  if (!tools) return tools.error().message();
  sampling_.tools_file = file;
  std::string reply = "tools:";
  for (const codec::ToolDefinition& tool : *tools) reply += " " + tool.name;
  return reply;
}

std::string ChatSession::save(const std::string& file) const {
  if (file.empty() || file == "-") return "name a file: /save FILE";
  JsonWriter json;
  json.begin_array();
  const auto write = [&json](const codec::InputMessage& m) {
    json.begin_object().member("role", codec::role_name(m.role)).member("content", m.content);
    const std::string reasoning = m.reasoning_content.value_or("");
    if (!reasoning.empty()) json.member("reasoning_content", reasoning);
    if (m.role == codec::Role::kTool) json.member("tool_call_id", m.tool_call_id);
    if (!m.tool_calls.empty()) write_calls(m.tool_calls, json);
    json.end_object();
  };
  if (sampling_.system) write(message(codec::Role::kSystem, *sampling_.system));
  for (const codec::InputMessage& m : messages_) write(m);
  json.end_array();
  Result<OutputFile> out = OutputFile::create(file);
  if (!out) return out.error().message();
  Status status = out->write(json.text() + "\n");
  if (status.ok()) status = out->commit();
  return status.ok() ? "saved to " + file : status.message();
}

std::string ChatSession::load(const std::string& file) {
  if (file.empty() || file == "-") return "name a file: /load FILE";
  const Result<std::string> json = read_text(file);
  if (!json) return json.error().message();
  Result<codec::ChatFile> body = codec::read_chat_file(*json, file);
  if (!body) return body.error().message();
  std::vector<codec::InputMessage>& messages = body->request.conversation.messages;
  sampling_.system.reset();
  if (!messages.empty() && messages.front().role == codec::Role::kSystem) {
    sampling_.system = messages.front().content;
    messages.erase(messages.begin());
  }
  messages_ = std::exchange(messages, {});
  loaded_ = std::move(body->request.conversation);
  loaded_.effort_level.reset();
  return "loaded " + std::to_string(messages_.size()) + " messages from " + file;
}

ChatSession::Next ChatSession::command(std::string_view line, std::string* reply,
                                       std::string* retry) {
  std::string_view rest = line;
  const std::string_view name = take_word(&rest);
  reply->clear();
  if (name == "/help" || name == "/?") {
    *reply = kHelp;
  } else if (name == "/exit" || name == "/quit") {
    return Next::kLeave;
  } else if (name == "/reset") {
    messages_.clear();
    *reply = "the conversation is forgotten";
  } else if (name == "/undo" || name == "/retry") {
    const std::optional<std::string> text = undo();
    if (text && name == "/retry") {
      *retry = *text;
      return Next::kAsk;
    }
    *reply = text ? "forgot: " + *text : "nothing was asked yet";
  } else if (name == "/system") {
    sampling_.system = rest.empty() ? std::nullopt : std::optional(std::string(rest));
    *reply = rest.empty() ? "no system message" : "system message set";
  } else if (name == "/think") {
    const bool known = parse_think(rest, &sampling_);
    *reply = known ? "think " + std::string(rest) : "/think off, low, high, xhigh, max or 1-100";
  } else if (name == "/fold") {
    fold_ = !fold_;
    *reply = fold_ ? "reasoning is folded" : "reasoning is shown";
  } else if (name == "/tools") {
    *reply = set_tools(std::string(rest));
  } else if (name == "/json") {
    sampling_.json_mode = !sampling_.json_mode.value_or(false);
    *reply = *sampling_.json_mode ? "answers are JSON objects" : "answers are text";
  } else if (name == "/params") {
    *reply = show_params();
  } else if (name == "/set") {
    const std::string_view setting = take_word(&rest);
    *reply = set(setting, rest);
  } else if (name == "/save") {
    *reply = save(std::string(rest));
  } else if (name == "/load") {
    *reply = load(std::string(rest));
  } else {
    *reply = "no command is called " + std::string(name) + "; /help lists them";
  }
  return Next::kGoOn;
}

}  // namespace fathom::app
