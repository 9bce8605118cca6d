#include <optional>

#include "codec/prompt.h"
#include "codec/tokenizer.h"

namespace fathom::codec {

Result<std::vector<int32_t>> encode_prompt(const Tokenizer& tokenizer, const Prompt& prompt) {
  std::vector<int32_t> ids;
  ids.reserve(prompt.text.size() / 3 + prompt.controls.size());
  const std::string_view text = prompt.text;
  size_t at = 0;
  for (const Prompt::Range& range : prompt.controls) {
    if (range.begin > at) {
      tokenizer.encode_append(text.substr(at, range.begin - at), /*recognize_added=*/false, &ids);
    }
    const std::string_view spelling = text.substr(range.begin, range.end - range.begin);
    const std::optional<int32_t> id = tokenizer.find(spelling);
    if (!id || !tokenizer.is_added(*id)) {
      return Status(StatusCode::kFailedPrecondition,
                    "the tokenizer has no control token " + std::string(spelling) +
                        ", so it is not one of this model; only raw prompts can be used with it");
    }
    ids.push_back(*id);
    at = range.end;
  }
  if (at < text.size()) {
    tokenizer.encode_append(text.substr(at), /*recognize_added=*/false, &ids);
  }
  return ids;
}

}  // namespace fathom::codec
