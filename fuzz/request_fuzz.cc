// Any bytes as a request of one of the three protocols: an error for the client, or a conversation
// that can be rendered.  The first byte chooses the protocol and the options.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "codec/json_text.h"
#include "codec/output_limit.h"
#include "codec/prompt.h"
#include "codec/request.h"

using namespace fathom::codec;

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

// Writing a value and reading it again changes nothing.
void check_json(const JsonValue& value) {
  for (const JsonStyle style : {JsonStyle::kCompact, JsonStyle::kPython, JsonStyle::kPythonV4}) {
    const fathom::Result<JsonValue> again = parse_json(write_json(value, style));
    check(again.has_value() && *again == value);
  }
}

void check_prompt(const Conversation& conversation, const RenderOptions& options) {
  const fathom::Result<Prompt> prompt = render_prompt(conversation, options);
  if (!prompt) std::abort();  // the readers make no conversation that cannot be rendered
  size_t end = 0;
  for (const Prompt::Range& range : prompt->controls) {
    check(end <= range.begin && range.begin < range.end && range.end <= prompt->text.size());
    end = range.end;
  }
  size_t images = 0;
  for (const InputMessage& message : conversation.messages) images += message.image_sources.size();
  check(prompt->images.size() == images);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  ConvertOptions options;
  options.default_thinking = (data[0] & 4) == 0;
  options.reject_missing_reasoning = (data[0] & 8) != 0;
  options.drop_messages_web_search = (data[0] & 16) != 0;
  options.drop_responses_web_search = (data[0] & 32) == 0;
  options.models.clear();
  options.any_model = (data[0] & 64) != 0 ? ModelVersion::kV4Pro : ModelVersion::kV41Flash;
  const auto protocol = static_cast<Protocol>((data[0] & 3) % 3);

  const fathom::Result<JsonValue> value = parse_json(body);
  if (value) check_json(*value);
  const fathom::Result<ConversationRequest> request = read_request(protocol, body, options);
  if (!request) {
    check(!request.error().message().empty());
    check(request_error_kind(request.error()) != RequestErrorKind::kInternal);
    check(parse_json(request_error_body(request.error())).has_value());
    return 0;
  }
  check(value.has_value());
  check(!request->conversation.messages.empty());
  RenderOptions render;
  render.version = options.any_model;
  check_prompt(request->conversation, render);
  const fathom::Result<uint32_t> limit = resolve_max_tokens(*request, options, 100, 1 << 20);
  check(limit.has_value() && *limit >= 1);
  return 0;
}
