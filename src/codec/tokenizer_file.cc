#include "codec/tokenizer_file.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <unordered_set>

#include "codec/tokenizer_bytes.h"
#include "codec/tokenizer_json.h"
#include "codec/tokenizer_stages.h"

namespace fathom::codec {
namespace {

namespace json = boost::json;

// The format nests 8 deep; the rest is room for sequences within sequences.
constexpr size_t kMaxJsonDepth = 64;

std::string_view view(json::string_view text) { return {text.data(), text.size()}; }

// A token for an error message: whole if short.
std::string quoted(std::string_view token) {
  constexpr size_t kShown = 60;
  if (token.size() <= kShown) return "\"" + std::string(token) + "\"";
  return "a token of " + std::to_string(token.size()) + " bytes";
}

Status require_absent(const JsonField& object, std::string_view name, std::string_view what) {
  FATHOM_ASSIGN(const std::optional<JsonField> found, object.optional_member(name));
  if (!found) return {};
  const json::value& value = found->value();
  const bool off = (value.is_bool() && !value.get_bool()) ||
                   (value.is_string() && value.get_string().empty()) ||
                   (value.is_number() && value.to_number<double>() == 0.0);
  return off ? Status() : found->unsupported(what);
}

Status read_vocab(const JsonField& model, TokenizerFile* file) {
  FATHOM_ASSIGN(const JsonField field, model.member("vocab"));
  FATHOM_ASSIGN(const json::object* vocab, field.object());
  std::vector<bool> taken;
  file->vocab.reserve(vocab->size());
  for (const auto& entry : *vocab) {
    const std::string_view content = view(entry.key());
    const Result<int32_t> id = JsonField(&entry.value(), "").integer(kMaxTokenId);
    if (!id) {
      return field.damaged("the id of " + quoted(content) + " is not an integer from 0 to " +
                           std::to_string(kMaxTokenId));
    }
    const auto index = static_cast<size_t>(*id);
    if (index >= taken.size()) taken.resize(std::max(index + 1, vocab->size()));
    if (taken[index]) return field.damaged("id " + std::to_string(*id) + " is given twice");
    taken[index] = true;
    file->vocab.push_back({std::string(content), *id});
  }
  return {};
}

// Null if `token` is unknown; ids were checked by read_vocab.
std::optional<int32_t> find_token(const json::object& vocab, std::string_view token) {
  const json::value* id = vocab.if_contains(token);
  if (id == nullptr) return std::nullopt;
  return static_cast<int32_t>(id->get_int64());
}

// Both notations: "left right" and ["left", "right"].
bool read_pair(const json::value& merge, std::string_view* left, std::string_view* right) {
  if (merge.is_string()) {
    const std::string_view both = view(merge.get_string());
    const size_t space = both.find(' ');
    if (space == std::string_view::npos || both.find(' ', space + 1) != std::string_view::npos) {
      return false;
    }
    *left = both.substr(0, space);
    *right = both.substr(space + 1);
    return true;
  }
  if (!merge.is_array() || merge.get_array().size() != 2) return false;
  const json::array& pair = merge.get_array();
  if (!pair[0].is_string() || !pair[1].is_string()) return false;
  *left = view(pair[0].get_string());
  *right = view(pair[1].get_string());
  return true;
}

Status read_merges(const JsonField& model, TokenizerFile* file) {
  const json::object& vocab = model.value().get_object().at("vocab").get_object();
  FATHOM_ASSIGN(const JsonField field, model.member("merges"));
  FATHOM_ASSIGN(const json::array* merges, field.array());
  file->merges.reserve(merges->size());
  std::string joined;
  for (size_t i = 0; i < merges->size(); ++i) {
    std::string_view left;
    std::string_view right;
    if (!read_pair((*merges)[i], &left, &right)) {
      return field.element(i).damaged("expected \"left right\" or [\"left\", \"right\"]");
    }
    joined.assign(left);
    joined.append(right);
    BpeModel::Merge merge{};
    for (const auto& [token, id] : {std::pair{left, &merge.left}, std::pair{right, &merge.right},
                                    std::pair{std::string_view(joined), &merge.result}}) {
      const std::optional<int32_t> found = find_token(vocab, token);
      if (!found) return field.element(i).damaged(quoted(token) + " is not in model.vocab");
      *id = *found;
    }
    file->merges.push_back(merge);
  }
  return {};
}

// Without a token for a byte, the package drops that byte in silence.
Status find_byte_tokens(const JsonField& model, TokenizerFile* file) {
  FATHOM_ASSIGN(const JsonField field, model.member("vocab"));
  FATHOM_ASSIGN(const json::object* vocab, field.object());
  for (int byte = 0; byte < 256; ++byte) {
    const char text = static_cast<char>(byte);
    const std::string spelled = spell_bytes({&text, 1});
    const std::optional<int32_t> id = find_token(*vocab, spelled);
    const bool in_utf8 = byte != 0xC0 && byte != 0xC1 && byte < 0xF5;
    if (!id && in_utf8) {
      return field.damaged("no token for the byte " + std::to_string(byte) +
                           ", which is spelled \"" + spelled + "\"");
    }
    file->byte_tokens[static_cast<size_t>(byte)] = id.value_or(BpeModel::kNoToken);
  }
  return {};
}

Status read_model(const JsonField& root, TokenizerFile* file) {
  FATHOM_ASSIGN(const JsonField model, root.member("model"));
  FATHOM_ASSIGN(const json::object* members, model.object());
  if (members->contains("type")) {
    FATHOM_ASSIGN(const std::string_view type, model.type());
    if (type != "BPE")
      return model.unsupported("the type \"" + std::string(type) + "\" (only BPE)");
  }
  FATHOM_TRY(require_absent(model, "dropout", "dropout"));
  FATHOM_TRY(require_absent(model, "unk_token", "an unknown token"));
  FATHOM_TRY(require_absent(model, "continuing_subword_prefix", "a subword prefix"));
  FATHOM_TRY(require_absent(model, "end_of_word_suffix", "a word suffix"));
  FATHOM_TRY(require_absent(model, "byte_fallback", "byte fallback"));
  FATHOM_ASSIGN(file->ignore_merges, model.flag("ignore_merges", false));
  FATHOM_TRY(read_vocab(model, file));
  FATHOM_TRY(find_byte_tokens(model, file));
  return read_merges(model, file);
}

Result<AddedToken> read_added_token(const JsonField& field) {
  AddedToken token;
  FATHOM_ASSIGN(const JsonField id, field.member("id"));
  FATHOM_ASSIGN(token.id, id.integer(kMaxTokenId));
  FATHOM_ASSIGN(const JsonField content, field.member("content"));
  FATHOM_ASSIGN(const std::string_view text, content.string());
  if (text.empty()) return content.damaged("empty");
  if (text.size() > kMaxAddedTokenBytes) {
    return content.unsupported("more than " + std::to_string(kMaxAddedTokenBytes) + " bytes");
  }
  token.content = text;
  FATHOM_ASSIGN(token.special, field.flag("special", false));
  FATHOM_ASSIGN(token.normalized, field.flag("normalized", !token.special));
  FATHOM_ASSIGN(token.lstrip, field.flag("lstrip", false));
  FATHOM_ASSIGN(token.rstrip, field.flag("rstrip", false));
  FATHOM_ASSIGN(token.single_word, field.flag("single_word", false));
  return token;
}

// Needs the base tokens: an id may be shared only by the same content.
Status read_added_tokens(const JsonField& root, TokenizerFile* file) {
  FATHOM_ASSIGN(const std::optional<JsonField> field, root.optional_member("added_tokens"));
  if (!field) return {};
  FATHOM_ASSIGN(const json::array* tokens, field->array());
  const json::object& vocab = root.value().get_object().at("model").at("vocab").get_object();
  std::vector<bool> base_ids(static_cast<size_t>(kMaxTokenId) + 1);
  for (const TokenizerFile::Token& token : file->vocab)
    base_ids[static_cast<size_t>(token.id)] = true;

  std::unordered_set<std::string_view> contents;
  std::unordered_set<int32_t> ids;
  file->added.reserve(tokens->size());  // `contents` points into it
  for (size_t i = 0; i < tokens->size(); ++i) {
    const JsonField element = field->element(i);
    FATHOM_ASSIGN(AddedToken token, read_added_token(element));
    const std::optional<int32_t> base = find_token(vocab, token.content);
    const bool id_is_base = base_ids[static_cast<size_t>(token.id)];
    if (base ? *base != token.id : id_is_base) {
      return element.damaged("id " + std::to_string(token.id) + " and content " +
                             quoted(token.content) + " contradict model.vocab");
    }
    file->added.push_back(std::move(token));
    const AddedToken& kept = file->added.back();
    if (!contents.insert(kept.content).second || !ids.insert(kept.id).second) {
      return element.damaged("an id or content that an earlier added token has");
    }
  }
  return {};
}

// What would change ids or text if it did anything.
Status check_idle_parts(const JsonField& root) {
  FATHOM_TRY(require_absent(root, "truncation", "truncation"));
  FATHOM_TRY(require_absent(root, "padding", "padding"));
  FATHOM_ASSIGN(const std::optional<JsonField> normalizer, root.optional_member("normalizer"));
  if (normalizer) {
    FATHOM_ASSIGN(const std::string_view type, normalizer->type());
    if (type != "Sequence") {
      return normalizer->unsupported("the normalizer \"" + std::string(type) + "\" (only none)");
    }
    FATHOM_ASSIGN(const JsonField list, normalizer->member("normalizers"));
    FATHOM_ASSIGN(const json::array* normalizers, list.array());
    if (!normalizers->empty()) return list.unsupported("a normalizer");
  }
  FATHOM_ASSIGN(const std::optional<JsonField> post, root.optional_member("post_processor"));
  if (post) {
    FATHOM_ASSIGN(const std::string_view type, post->type());
    if (type != "ByteLevel") {
      return post->unsupported("the post-processor \"" + std::string(type) + "\" (only ByteLevel)");
    }
  }
  FATHOM_ASSIGN(const JsonField decoder, root.member("decoder"));
  if (decoder.is_null()) return decoder.unsupported("a file without a decoder");
  FATHOM_ASSIGN(const std::string_view type, decoder.type());
  if (type == "ByteLevel") return {};
  return decoder.unsupported("the decoder \"" + std::string(type) + "\" (only ByteLevel)");
}

Result<TokenizerFile> read_document(std::string_view text) {
  json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  json::parser parser(json::make_shared_resource<json::monotonic_resource>(), options);
  json::error_code error;
  const size_t read = parser.write(text.data(), text.size(), error);
  if (error) {
    return Status(StatusCode::kDataLoss,
                  "not valid JSON after byte " + std::to_string(read) + " of " +
                      std::to_string(text.size()) + " (" + error.message() +
                      "); if the download was cut off, fetch the file again");
  }
  const json::value document = parser.release();
  const JsonField root(&document, "");
  TokenizerFile file;
  FATHOM_TRY(check_idle_parts(root));
  FATHOM_ASSIGN(file.pre_tokenizer, read_pre_tokenizer(root));
  FATHOM_TRY(read_model(root, &file));
  FATHOM_TRY(read_added_tokens(root, &file));
  return file;
}

}  // namespace

Result<TokenizerFile> read_tokenizer_file(std::string_view text) {
  try {
    return read_document(text);
  } catch (const std::exception& e) {
    return Status(StatusCode::kResourceExhausted, std::string("cannot be read: ") + e.what());
  }
}

}  // namespace fathom::codec
