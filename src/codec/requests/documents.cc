#include "codec/requests/documents.h"

#include <optional>

#include "codec/requests/images.h"
#include "codec/unicode_utf8.h"

namespace fathom::codec {

namespace {

Status unreadable(const std::string& place, std::string_view what) {
  return bad_request(place + ": " + std::string(what) +
                     " cannot be read here. Pass the text of the document instead.");
}

// Title or file name on a line of its own, then the text.
std::string titled(std::string_view title, std::string text) {
  if (title.empty()) return text;
  return std::string(title).append("\n").append(text);
}

struct DataUrl {
  std::string_view type;  // without parameters
  std::string_view data;
};

std::optional<DataUrl> split_data_url(std::string_view url) {
  static constexpr std::string_view kMark = ";base64,";
  const size_t mark = url.find(kMark);
  if (!url.starts_with("data:") || mark == std::string_view::npos) return std::nullopt;
  const std::string_view type = url.substr(5, mark - 5);
  return DataUrl{type.substr(0, type.find(';')), url.substr(mark + kMark.size())};
}

bool is_text_type(std::string_view type) {
  return type.starts_with("text/") || type == "application/json" || type == "application/xml";
}

}  // namespace

Status add_input_file(const JsonValue& file, const std::string& path, const std::string& place,
                      ContentBuilder* builder) {
  const std::string* data = string_field(file, "file_data");
  if (data == nullptr) {
    return unreadable(place, field(file, "file_id") != nullptr ? "a file given by its id"
                                                               : "a file given by a link");
  }
  const std::optional<DataUrl> url = split_data_url(*data);
  if (!url) return bad_request(place + ": file_data is not a valid base64 data url");
  if (url->type.starts_with("image/")) {
    if (builder->replaces_image()) return Status();
    FATHOM_ASSIGN(ImageSource image, url_image(*data, "", {path, place, place}));
    builder->add_image(std::move(image));
    return Status();
  }
  if (!is_text_type(url->type)) {
    return unreadable(place, "a file of type " + std::string(url->type));
  }
  const std::optional<std::string> text = decode_base64(url->data);
  if (!text || valid_utf8_prefix(*text) != text->size()) {
    return bad_request(place + ": file_data is not text in UTF-8");
  }
  builder->add_text(titled(text_field(file, "filename"), *text));
  return Status();
}

void check_document_shape(const Shape& block) {
  block.optional("title").is_string();
  const Shape source = block.required("source");
  if (!source.is_object()) return;
  const Shape type = source.required("type");
  if (!type.is_one_of({"base64", "text", "url", "content", "file"})) return;
  const std::string& kind = *type.value().if_string();
  source.optional("media_type").is_string();
  if (kind == "text") source.required("data").is_string();
  if (kind != "content") return;
  const Shape content = source.required("content");
  if (!content.is_string_or_list("a string or a list")) return;
  content.each_if_list([](const Shape& part) {
    if (!part.is_object()) return;
    const Shape part_type = part.required("type");
    if (!part_type.is_one_of({"text", "image"})) return;
    if (*part_type.value().if_string() == "text") {
      part.required("text").is_string();
    } else {
      check_anthropic_source_shape(part.required("source"));
    }
  });
}

Status add_document(const JsonValue& block, BodyTexts texts, const std::string& path,
                    const std::string& place, ContentBuilder* builder) {
  const JsonValue& source = *block.find("source");
  const std::string_view type = text_field(source, "type");
  const std::string_view title = text_field(block, "title");
  if (type == "text") {
    builder->add_text(titled(title, texts.take(source, "data")));
    return Status();
  }
  if (type == "content") {
    if (const std::string* text = string_field(source, "content")) {
      builder->add_text(titled(title, texts.take(*text)));
      return Status();
    }
    if (!title.empty()) builder->add_text(std::string(title));
    for (const JsonValue& part : *list_field(source, "content")) {
      if (text_field(part, "type") == "text") {
        builder->add_text(texts.take(part, "text"));
        continue;
      }
      if (builder->replaces_image()) continue;
      FATHOM_ASSIGN(ImageSource image,
                    anthropic_image(*part.find("source"), {path, place, place + ":"}));
      builder->add_image(std::move(image));
    }
    return Status();
  }
  const std::string_view media_type = text_field(source, "media_type");
  if (type == "base64" && is_text_type(media_type)) {
    const std::optional<std::string> text = decode_base64(text_field(source, "data"));
    if (text && valid_utf8_prefix(*text) == text->size()) {
      builder->add_text(titled(title, *text));
      return Status();
    }
  }
  return unreadable(
      place, type == "base64"
                 ? "a document of type " + std::string(media_type.empty() ? "unknown" : media_type)
             : type == "url" ? std::string("a document given by a link")
                             : std::string("a document given by its id"));
}

}  // namespace fathom::codec
