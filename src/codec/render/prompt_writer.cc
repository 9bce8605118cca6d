#include "codec/render/prompt_writer.h"

#include <utility>

namespace fathom::codec {

void PromptWriter::control(std::string_view spelling) {
  const size_t begin = prompt_.text.size();
  prompt_.text.append(spelling);
  prompt_.controls.push_back({begin, prompt_.text.size()});
}

void PromptWriter::template_text(std::string_view text) {
  static const SpecialTokens kDefaults;
  const std::pair<std::string_view, std::string_view> marks[] = {
      {kDefaults.dsml, tokens_.dsml},
      {kDefaults.think_begin, tokens_.think_begin},
      {kDefaults.think_end, tokens_.think_end}};
  size_t plain = 0;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    bool is_mark = false;
    if (c == '<' || c == kDefaults.dsml[0]) {
      for (const auto& [mark, spelling] : marks) {
        if (text.substr(i, mark.size()) != mark) continue;
        this->text(text.substr(plain, i - plain));
        control(spelling);
        plain = i += mark.size();
        is_mark = true;
        break;
      }
    }
    if (!is_mark) ++i;
  }
  this->text(text.substr(plain));
}

void PromptWriter::content(const InputMessage& message) {
  const std::string_view content = message.content;
  size_t at = 0;
  for (const ImageSource& source : message.image_sources) {
    const size_t place = source.offset == ImageSource::kNextPlaceholder
                             ? content.find(kImagePlaceholder, at)
                             : source.offset;
    if (place < at || place > content.size() ||
        content.substr(place, kImagePlaceholder.size()) != kImagePlaceholder) {
      if (error_.ok()) {
        error_ = Status(StatusCode::kInvalidArgument,
                        source.path + (source.path.empty() ? "" : ": ") +
                            "a message has more images than placeholders for them; write " +
                            std::string(kImagePlaceholder) + " once for each image");
      }
      return;
    }
    text(content.substr(at, place - at));
    control(tokens_.image);
    prompt_.images.push_back(&source);
    at = place + kImagePlaceholder.size();
  }
  text(content.substr(at));
}

Result<Prompt> PromptWriter::finish() && {
  if (!error_.ok()) return std::move(error_);
  return std::move(prompt_);
}

}  // namespace fathom::codec
