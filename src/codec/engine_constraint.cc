#include "codec/engine_constraint.h"

#include <algorithm>
#include <utility>

#include "codec/json_text.h"
#include "codec/requests/tools.h"

namespace fathom::codec {
namespace {

using Format = ResponseFormat::Kind;

std::string schema_text(const ConversationRequest& request) {
  // The constraint of a strict format has the normalized schema.
  const auto& constraint = request.inference.output_constraint;
  if (constraint && constraint->kind == OutputConstraint::Kind::kJson &&
      !constraint->text.empty()) {
    return constraint->text;
  }
  return write_json(request.conversation.response_format.schema, JsonStyle::kCompact);
}

bool is_strict(const ToolDefinition& tool) { return tool.strict.value_or(false); }

Result<Constraint> tool_constraint(const ConversationRequest& request) {
  const Conversation& conversation = request.conversation;
  Constraint out;
  out.tool_calls.required = conversation.tool_choice == ToolChoice::kRequired;
  out.tool_calls.opened = out.tool_calls.required && !conversation.thinking;
  out.tool_calls.v4_tags = request.model_version == ModelVersion::kV4Pro;
  if (!out.tool_calls.required) {
    switch (conversation.response_format.kind) {
      case Format::kText:
        if (std::none_of(conversation.tools.begin(), conversation.tools.end(), is_strict))
          return out;
        break;
      case Format::kJsonObject:
        out.tool_calls.answer_schema = R"({"type":"object"})";
        break;
      case Format::kJsonSchema:
        out.tool_calls.answer_schema = schema_text(request);
        break;
      case Format::kRegex:
        return Status(StatusCode::kInvalidArgument,
                      "response_format regex cannot be used with tools; leave one of them out");
    }
  }
  out.kind = Constraint::Kind::kToolCalls;
  out.text = constraint_tools(conversation.tools);
  return out;
}

}  // namespace

bool begins_thinking(const Conversation& conversation) {
  if (!conversation.thinking || conversation.messages.empty()) return conversation.thinking;
  const InputMessage& last = conversation.messages.back();
  return !last.prefix || last.content.empty();
}

std::string begun_answer(const Conversation& conversation) {
  if (conversation.messages.empty() || !conversation.messages.back().prefix) return "";
  return conversation.messages.back().content;
}

Result<Constraint> engine_constraint(const ConversationRequest& request,
                                     const Tokenizer& tokenizer) {
  const Conversation& conversation = request.conversation;
  Constraint out;
  if (!conversation.tools.empty() && conversation.tool_choice != ToolChoice::kNone) {
    FATHOM_ASSIGN(out, tool_constraint(request));
  } else {
    switch (conversation.response_format.kind) {
      case Format::kText:
        break;
      case Format::kJsonObject:
        out.kind = Constraint::Kind::kJsonObject;
        break;
      case Format::kJsonSchema:
        out.kind = Constraint::Kind::kJsonSchema;
        out.text = schema_text(request);
        break;
      case Format::kRegex:
        out.kind = Constraint::Kind::kRegex;
        out.text = conversation.response_format.regex;
        break;
    }
    if (out.kind != Constraint::Kind::kNone) out.begun = begun_answer(conversation);
  }
  if (out.kind == Constraint::Kind::kNone || !begins_thinking(conversation)) return out;
  const std::string& end = request.parsing.special_tokens.think_end;
  const std::optional<int32_t> end_think = tokenizer.find(end);
  if (!end_think) {
    return Status(
        StatusCode::kFailedPrecondition,
        "the tokenizer has no token " + end + ", so thinking has no end; turn thinking off");
  }
  out.starts_after = *end_think;
  return out;
}

std::vector<std::string> constraint_tokens(const Tokenizer& tokenizer) {
  const std::optional<int32_t> dsml = tokenizer.find(SpecialTokens().dsml);
  std::vector<std::string> out(static_cast<size_t>(tokenizer.vocab_size()));
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.is_added(id) && id != dsml) continue;
    out[static_cast<size_t>(id)] = std::string(tokenizer.token_bytes(id));
  }
  return out;
}

}  // namespace fathom::codec
