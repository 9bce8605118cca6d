#include "codec/tokenizer.h"

#include <algorithm>
#include <exception>
#include <fstream>
#include <system_error>
#include <unordered_map>

#include "codec/bpe.h"
#include "codec/tokenizer_added.h"
#include "codec/tokenizer_bytes.h"
#include "codec/tokenizer_file.h"
#include "codec/unicode_utf8.h"

namespace fathom::codec {
namespace {

// Fifty times the largest one known; offsets into it fit 32 bits.
constexpr uintmax_t kMaxFileBytes = uintmax_t{512} << 20;

Result<std::string> read_file(const std::filesystem::path& file) {
  std::error_code error;
  const auto kind = std::filesystem::status(file, error).type();
  if (kind == std::filesystem::file_type::not_found) {
    return Status(StatusCode::kNotFound, file.string() + ": no such file");
  }
  const uintmax_t size = std::filesystem::file_size(file, error);
  if (error || kind != std::filesystem::file_type::regular) {
    return Status(StatusCode::kDataLoss, file.string() + ": not a readable file");
  }
  if (size > kMaxFileBytes) {
    return Status(StatusCode::kDataLoss, file.string() + ": " + std::to_string(size) +
                                             " bytes, more than a tokenizer.json can have");
  }
  std::string text(size, '\0');
  std::ifstream stream(file, std::ios::binary);
  if (!stream.read(text.data(), static_cast<std::streamsize>(size))) {
    return Status(StatusCode::kDataLoss, file.string() + ": cannot be read");
  }
  return text;
}

}  // namespace

struct Tokenizer::Parts {
  explicit Parts(TokenizerFile from)
      : file(std::move(from)), bpe(file.byte_tokens, file.merges), added(file.added) {}

  void encode_plain(std::string_view text, BpeEncoder* encoder, std::vector<int32_t>* out) const {
    file.pre_tokenizer.for_each_piece(text, [&](std::string_view piece) {
      if (file.ignore_merges) {
        const auto whole = base_ids.find(spell_bytes(piece));
        if (whole != base_ids.end()) return out->push_back(whole->second);
      }
      encoder->encode(piece, out);
    });
  }

  TokenizerFile file;
  BpeModel bpe;
  AddedTokens added;
  std::unordered_map<std::string_view, int32_t> base_ids;  // keys point into `texts_`
  std::unordered_map<std::string_view, int32_t> added_ids;
};

Tokenizer::Tokenizer() = default;
Tokenizer::~Tokenizer() = default;

std::string_view Tokenizer::Strings::at(int32_t id) const {
  const auto index = static_cast<size_t>(id);
  return std::string_view(text).substr(begin[index], begin[index + 1] - begin[index]);
}

Result<std::unique_ptr<Tokenizer>> Tokenizer::load(const std::filesystem::path& file) {
  try {
    FATHOM_ASSIGN(const std::string text, read_file(file));
    return parse(text, file.string());
  } catch (const std::exception& e) {
    return Status(StatusCode::kResourceExhausted, file.string() + ": " + e.what());
  }
}

Result<std::unique_ptr<Tokenizer>> Tokenizer::parse(std::string_view json, std::string_view where) {
  try {
    Result<TokenizerFile> file = read_tokenizer_file(json);
    if (!file) return std::move(file).error().with_context(where);
    std::unique_ptr<Tokenizer> tokenizer(new Tokenizer);
    tokenizer->parts_ = std::make_unique<Parts>(*std::move(file));
    FATHOM_TRY(tokenizer->set_tokens().with_context(where));
    return tokenizer;
  } catch (const std::exception& e) {
    return Status(StatusCode::kResourceExhausted, std::string(where) + ": " + e.what());
  }
}

Status Tokenizer::set_tokens() {
  TokenizerFile& file = parts_->file;
  int32_t greatest = -1;
  for (const auto& token : file.vocab) greatest = std::max(greatest, token.id);
  for (const auto& token : file.added) greatest = std::max(greatest, token.id);
  const auto size = static_cast<size_t>(greatest + 1);
  is_added_.resize(size);
  is_special_.resize(size);

  std::vector<std::string_view> by_id(size);
  for (const auto& token : file.vocab) by_id[static_cast<size_t>(token.id)] = token.content;
  for (const auto& token : file.added) {
    by_id[static_cast<size_t>(token.id)] = token.content;
    is_added_[static_cast<size_t>(token.id)] = true;
    is_special_[static_cast<size_t>(token.id)] = token.special;
  }
  for (const std::string_view content : by_id) {
    texts_.begin.push_back(static_cast<uint32_t>(texts_.text.size()));
    texts_.text.append(content);
    bytes_.begin.push_back(static_cast<uint32_t>(bytes_.text.size()));
    append_token_bytes(content, &bytes_.text);
  }
  texts_.begin.push_back(static_cast<uint32_t>(texts_.text.size()));
  bytes_.begin.push_back(static_cast<uint32_t>(bytes_.text.size()));

  parts_->base_ids.reserve(file.vocab.size());
  for (const auto& token : file.vocab) parts_->base_ids.emplace(texts_.at(token.id), token.id);
  for (const auto& token : file.added) parts_->added_ids.emplace(texts_.at(token.id), token.id);
  // The rest of the file lives on in the tables made from it.
  file.vocab = {};
  file.merges = {};
  file.added = {};
  return {};
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool recognize_added) const {
  std::vector<int32_t> ids;
  encode_append(text, recognize_added, &ids);
  return ids;
}

void Tokenizer::encode_append(std::string_view text, bool recognize_added,
                              std::vector<int32_t>* out) const {
  std::string repaired;
  if (valid_utf8_prefix(text) < text.size()) {
    append_repaired_utf8(text, &repaired);
    text = repaired;
  }
  BpeEncoder encoder(parts_->bpe, text.size());
  if (!recognize_added) return parts_->encode_plain(text, &encoder, out);
  for (const AddedTokens::Segment& segment : parts_->added.split(text)) {
    if (segment.id == AddedTokens::kText) {
      parts_->encode_plain(segment.text, &encoder, out);
    } else {
      out->push_back(segment.id);
    }
  }
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string bytes;
  for (const int32_t id : ids) {
    if (!(skip_special && is_special(id))) bytes.append(token_bytes(id));
  }
  if (valid_utf8_prefix(bytes) == bytes.size()) return bytes;
  std::string text;
  append_repaired_utf8(bytes, &text);
  return text;
}

std::optional<int32_t> Tokenizer::find(std::string_view token) const {
  for (const auto* ids : {&parts_->added_ids, &parts_->base_ids}) {
    if (const auto found = ids->find(token); found != ids->end()) return found->second;
  }
  return std::nullopt;
}

std::string_view Tokenizer::token_text(int32_t id) const {
  return is_known(id) ? texts_.at(id) : std::string_view();
}

std::string_view Tokenizer::token_bytes(int32_t id) const {
  return is_known(id) ? bytes_.at(id) : std::string_view();
}

}  // namespace fathom::codec
