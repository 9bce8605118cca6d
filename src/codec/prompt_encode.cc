#include <optional>

#include "codec/prompt.h"
#include "codec/tokenizer.h"

namespace fathom::codec {

namespace {

// Some files of V4.1 spell the placeholder of images so.
constexpr std::string_view kOtherImageSpelling = "<｜deepseek_image｜>";

Result<int32_t> control_id(const Tokenizer& tokenizer, std::string_view spelling) {
  std::optional<int32_t> id = tokenizer.find(spelling);
  if (!id && spelling == kImagePlaceholder) id = tokenizer.find(kOtherImageSpelling);
  if (id && tokenizer.is_added(*id)) return *id;
  return Status(StatusCode::kFailedPrecondition,
                "the tokenizer has no control token " + std::string(spelling) +
                    ", so it is not one of this model; only raw prompts can be used with it");
}

}  // namespace

Result<ExpandedPrompt> expand_images(const Tokenizer& tokenizer, const Prompt& prompt,
                                     std::span<const size_t> num_tokens) {
  ExpandedPrompt out;
  out.ids.reserve(prompt.text.size() / 3 + prompt.controls.size());
  const std::string_view text = prompt.text;
  size_t at = 0;
  for (const Prompt::Range& range : prompt.controls) {
    if (range.begin > at) {
      tokenizer.encode_append(text.substr(at, range.begin - at), /*recognize_added=*/false,
                              &out.ids);
    }
    const std::string_view spelling = text.substr(range.begin, range.end - range.begin);
    FATHOM_ASSIGN(const int32_t id, control_id(tokenizer, spelling));
    size_t count = 1;
    if (spelling == kImagePlaceholder && out.images.size() < num_tokens.size()) {
      count = num_tokens[out.images.size()];
      out.images.push_back({out.images.size(), out.ids.size(), count});
    }
    out.ids.insert(out.ids.end(), count, id);
    at = range.end;
  }
  if (at < text.size()) {
    tokenizer.encode_append(text.substr(at), /*recognize_added=*/false, &out.ids);
  }
  return out;
}

Result<std::vector<int32_t>> encode_prompt(const Tokenizer& tokenizer, const Prompt& prompt) {
  FATHOM_ASSIGN(ExpandedPrompt expanded, expand_images(tokenizer, prompt, {}));
  return std::move(expanded.ids);
}

}  // namespace fathom::codec
