// The tokenizer that a tokenizer.json describes: text to token ids and back.
//
// Interpreted: byte-level BPE (both merge notations, ignore_merges), pre-tokenizers Sequence,
// Split, Digits, ByteLevel, added tokens with their flags, the ByteLevel decoder.  Nothing is added
// to a text by itself (no BOS).  A file that asks for more is refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fathom/status.h"

namespace fathom::codec {

// Thread: any; immutable after load.
class Tokenizer {
 public:
  // kNotFound: no such file.  kDataLoss: not a whole tokenizer.json.  kUnimplemented: it asks for
  // something that is not interpreted.  The message names the file and the place in it.
  static Result<std::unique_ptr<Tokenizer>> load(const std::filesystem::path& file);
  // The same of a text; `where` stands for the file in errors.
  static Result<std::unique_ptr<Tokenizer>> parse(std::string_view json, std::string_view where);
  ~Tokenizer();

  // Greatest id + 1.  Ids below it may be unused; token_text() of those is empty.
  int32_t vocab_size() const { return static_cast<int32_t>(is_special_.size()); }

  // Ids of `text`, which may be up to 2 GiB; bytes that are not UTF-8 count as U+FFFD, one for each
  // maximal invalid part.  With `recognize_added`, spellings of added tokens become their ids; text
  // of users in a prompt is encoded without.
  std::vector<int32_t> encode(std::string_view text, bool recognize_added) const;
  void encode_append(std::string_view text, bool recognize_added, std::vector<int32_t>* out) const;

  // Text of `ids`: valid UTF-8, with U+FFFD for bytes that are none.  Unknown ids have no text.
  std::string decode(std::span<const int32_t> ids, bool skip_special) const;

  // The token that the file spells so: an added token by its content, else a base token in the
  // byte-level alphabet ("Ġthe").
  std::optional<int32_t> find(std::string_view token) const;
  // The spelling of a token in the file; empty for unknown ids.  Lives as long as the tokenizer.
  std::string_view token_text(int32_t id) const;
  // The bytes that a token stands for, which need not be UTF-8; empty for unknown ids.  Lives as
  // long as the tokenizer.
  std::string_view token_bytes(int32_t id) const;
  bool is_added(int32_t id) const { return is_known(id) && is_added_[static_cast<size_t>(id)]; }
  bool is_special(int32_t id) const { return is_known(id) && is_special_[static_cast<size_t>(id)]; }

 private:
  struct Parts;
  // Strings by id, one after the other.
  struct Strings {
    std::string text;
    std::vector<uint32_t> begin;  // [id], and the end of the last
    std::string_view at(int32_t id) const;
  };

  Tokenizer();
  Status set_tokens();
  bool is_known(int32_t id) const { return id >= 0 && id < vocab_size(); }

  std::unique_ptr<Parts> parts_;
  Strings texts_;
  Strings bytes_;
  std::vector<bool> is_added_;
  std::vector<bool> is_special_;
};

}  // namespace fathom::codec
