#include "server/raw_prompt.h"

#include "codec/conversation.h"

namespace fathom::server {
namespace {

Status bad_prompt() {
  return Status(StatusCode::kInvalidArgument,
                "invalid request body: .prompt: expected a string, a list of strings, a list of "
                "token ids, or a list of such lists, and none of them empty");
}

Result<RawPrompt> from_text(const codec::Tokenizer& tokenizer, const std::string& text,
                            bool add_bos) {
  RawPrompt out{.ids = encode_raw(tokenizer, text, add_bos), .text = text};
  if (out.ids.empty()) return bad_prompt();
  return out;
}

Result<RawPrompt> from_ids(const codec::Tokenizer& tokenizer, const codec::JsonArray& ids) {
  RawPrompt out;
  for (const codec::JsonValue& one : ids) {
    const int64_t* id = one.if_int64();
    if (id == nullptr) return bad_prompt();
    if (*id < 0 || *id >= tokenizer.vocab_size()) {
      return Status(StatusCode::kInvalidArgument, "the prompt has the token id " +
                                                      std::to_string(*id) +
                                                      "; the vocabulary has ids 0 to " +
                                                      std::to_string(tokenizer.vocab_size() - 1));
    }
    out.ids.push_back(static_cast<int32_t>(*id));
  }
  if (out.ids.empty()) return bad_prompt();
  out.text = tokenizer.decode(out.ids, /*skip_special=*/true);
  return out;
}

}  // namespace

std::vector<int32_t> encode_raw(const codec::Tokenizer& tokenizer, std::string_view text,
                                bool add_bos) {
  std::vector<int32_t> ids;
  const auto bos = tokenizer.find(codec::SpecialTokens().begin_of_sentence);
  if (add_bos && bos) ids.push_back(*bos);
  tokenizer.encode_append(text, /*recognize_added=*/true, &ids);
  const bool twice = add_bos && bos && ids.size() > 1 && ids[1] == *bos;
  if (twice) ids.erase(ids.begin());
  return ids;
}

Result<std::vector<RawPrompt>> read_raw_prompts(const codec::Tokenizer& tokenizer,
                                                const codec::JsonValue& prompt, bool add_bos,
                                                size_t max_prompts) {
  std::vector<RawPrompt> out;
  if (const std::string* text = prompt.if_string()) {
    FATHOM_ASSIGN(RawPrompt one, from_text(tokenizer, *text, add_bos));
    out.push_back(std::move(one));
    return out;
  }
  const codec::JsonArray* list = prompt.if_array();
  if (list == nullptr || list->empty()) return bad_prompt();
  if (list->front().if_int64() != nullptr) {
    FATHOM_ASSIGN(RawPrompt one, from_ids(tokenizer, *list));
    out.push_back(std::move(one));
    return out;
  }
  if (list->size() > max_prompts) {
    return Status(StatusCode::kInvalidArgument,
                  "a request may have " + std::to_string(max_prompts) + " prompts, this one has " +
                      std::to_string(list->size()));
  }
  for (const codec::JsonValue& one : *list) {
    if (const std::string* text = one.if_string()) {
      FATHOM_ASSIGN(RawPrompt raw, from_text(tokenizer, *text, add_bos));
      out.push_back(std::move(raw));
    } else if (const codec::JsonArray* ids = one.if_array()) {
      FATHOM_ASSIGN(RawPrompt raw, from_ids(tokenizer, *ids));
      out.push_back(std::move(raw));
    } else {
      return bad_prompt();
    }
  }
  return out;
}

}  // namespace fathom::server
