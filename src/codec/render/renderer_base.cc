#include "codec/render/renderer_base.h"

#include <utility>

#include "codec/render/tool_text.h"
#include "codec/render/versions.h"

namespace fathom::codec {
namespace {

bool asks_for_format(const Conversation& conversation) {
  const ResponseFormat::Kind format = conversation.response_format.kind;
  return format == ResponseFormat::Kind::kJsonObject || format == ResponseFormat::Kind::kJsonSchema;
}

}  // namespace

RendererBase::RendererBase(const Conversation& conversation, const RenderOptions& options,
                           ModelVersion version, std::vector<Turn> turns)
    : conversation_(conversation),
      tokens_(options.special_tokens),
      version_(version),
      out_(options.special_tokens),
      turns_(std::move(turns)),
      offers_tools_(conversation.tool_choice != ToolChoice::kNone && !conversation.tools.empty()),
      lists_tools_(lists_tools(conversation)),
      has_format_(asks_for_format(conversation)) {
  if ((lists_tools_ || has_format_) && (turns_.empty() || turns_[0].role != Role::kSystem)) {
    turns_.insert(turns_.begin(), Turn{Role::kSystem, {}});
  }
  out_.reserve(estimate_prompt_bytes(conversation_));
}

bool RendererBase::is_prefix(size_t turn) const {
  return turn + 1 == turns_.size() && turns_[turn].role == Role::kAssistant &&
         turns_[turn].only().prefix;
}

void RendererBase::write_sections() {
  if (lists_tools_) {
    out_.text("\n\n");
    write_tool_section(conversation_.tools, version_, &out_);
  }
  if (has_format_) {
    out_.text("\n\n");
    write_format_section(conversation_.response_format, version_, &out_);
  }
}

void RendererBase::write_opener(bool goes_on) {
  if (goes_on) {
    out_.text("\n\n");
  } else {
    out_.control(tokens_.user);
  }
}

void RendererBase::write_result(const Turn& turn) {
  out_.text("<tool_result>");
  out_.content(turn.only());
  out_.text("</tool_result>");
}

void RendererBase::write_reminder(const Turn& turn) {
  out_.control(tokens_.latest_reminder);
  out_.content(turn.only());
}

void RendererBase::write_assistant(const InputMessage& message, bool shows_reasoning,
                                   bool is_prefix, bool sorts_calls) {
  out_.control(tokens_.assistant);
  if (shows_reasoning) {
    out_.control(tokens_.think_begin);
    out_.text(message.reasoning_content.value_or(""));
  }
  // A prefix that has no answer yet goes on with the reasoning.
  if (!(is_prefix && shows_reasoning && message.content.empty())) {
    out_.control(tokens_.think_end);
    out_.content(message);
  }
  if (!message.tool_calls.empty()) {
    out_.text("\n\n");
    write_call_block(calls_of(message, sorts_calls), version_, &out_);
  }
  if (!is_prefix) out_.control(tokens_.end_of_sentence);
}

void RendererBase::write_answer_opening() {
  if (!turns_.empty() && is_prefix(turns_.size() - 1)) return;
  out_.control(tokens_.assistant);
  out_.control(conversation_.thinking ? tokens_.think_begin : tokens_.think_end);
  // With thinking the model thinks first; the constraint of the engine forces the call then.
  if (conversation_.tool_choice == ToolChoice::kRequired && offers_tools_ &&
      !conversation_.thinking) {
    write_block_opening(version_, &out_);
  }
}

}  // namespace fathom::codec
