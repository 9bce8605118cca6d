#include "codec/engram_classes.h"

#include <utf8proc.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>

#include "codec/unicode_table.h"
#include "codec/unicode_utf8.h"

namespace fathom::codec {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
// The rule hides a text of one space behind this character while it trims, so it comes out as a
// space wherever a token has it.
constexpr utf8proc_int32_t kSpaceMark = 0xE000;
// The ids 0, 1, 2 of the release are control tokens of different texts.
constexpr int32_t kReleasePad = 2;

bool is_white_space(utf8proc_int32_t c) {
  return std::ranges::any_of(white_space_ranges(), [c](const CodePointRange& range) {
    return static_cast<uint32_t>(c) >= range.first && static_cast<uint32_t>(c) <= range.last;
  });
}

// Folds texts; keeps its buffers between them.
class TextFolder {
 public:
  // The key of a text of valid UTF-8: itself if nothing is left of it.
  Result<std::string> fold(const std::string& text) {
    FATHOM_TRY(decompose(text));
    for (utf8proc_int32_t& c : points_) c = utf8proc_tolower(c);
    join_spaces();
    if (points_.size() == 1 && points_[0] == ' ') return std::string(" ");
    const auto end = std::find_if_not(points_.rbegin(), points_.rend(), is_white_space).base();
    const auto begin = std::find_if_not(points_.begin(), end, is_white_space);
    std::string key;
    for (auto c = begin; c != end; ++c)
      append_utf8(static_cast<uint32_t>(*c == kSpaceMark ? ' ' : *c), &key);
    return key.empty() ? text : key;
  }

 private:
  // NFKD without marks.  The rule says NFKC, then NFD, which is the same; and all marks (M), not
  // only the nonspacing ones, or 99,510 classes come out of the release's tokenizer.
  Status decompose(const std::string& text) {
    constexpr auto kOptions = static_cast<utf8proc_option_t>(
        UTF8PROC_STABLE | UTF8PROC_COMPAT | UTF8PROC_DECOMPOSE | UTF8PROC_STRIPMARK);
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
    const auto num_bytes = static_cast<utf8proc_ssize_t>(text.size());
    points_.resize(text.size() + 64);
    // Twice if that was too little: one character can become 18.
    for (;;) {
      const auto room = static_cast<utf8proc_ssize_t>(points_.size());
      const utf8proc_ssize_t used =
          utf8proc_decompose(bytes, num_bytes, points_.data(), room, kOptions);
      if (used < 0) {
        return {StatusCode::kInternal,
                "a token's text cannot be decomposed: " + std::string(utf8proc_errmsg(used))};
      }
      points_.resize(static_cast<size_t>(used));
      if (used <= room) return {};
    }
  }

  // One space for each run of space, tab, CR and LF.
  void join_spaces() {
    const auto is_joined = [](utf8proc_int32_t c) {
      return c == ' ' || c == '\t' || c == '\r' || c == '\n';
    };
    size_t kept = 0;
    for (const utf8proc_int32_t c : points_) {
      const bool joined = is_joined(c);
      if (joined && kept > 0 && points_[kept - 1] == ' ') continue;
      points_[kept++] = joined ? ' ' : c;
    }
    points_.resize(kept);
  }

  std::vector<utf8proc_int32_t> points_;
};

}  // namespace

Result<std::vector<int32_t>> engram_classes(const Tokenizer& tokenizer, int32_t vocab_size,
                                            int32_t pad_token_id, int32_t num_classes) {
  if (pad_token_id < 0 || pad_token_id >= vocab_size) {
    return Status(StatusCode::kInvalidArgument,
                  "the Engram pad id " + std::to_string(pad_token_id) + " is not one of the " +
                      std::to_string(vocab_size) + " ids");
  }
  if (tokenizer.vocab_size() > vocab_size) {
    return Status(StatusCode::kFailedPrecondition,
                  "the tokenizer has ids up to " + std::to_string(tokenizer.vocab_size() - 1) +
                      ", but the vocabulary has " + std::to_string(vocab_size) +
                      "; these files are not of one model");
  }
  TextFolder folder;
  std::unordered_map<std::string, int32_t> classes;
  std::vector<int32_t> map(static_cast<size_t>(vocab_size));
  for (int32_t id = 0; id < vocab_size; ++id) {
    std::string key = tokenizer.decode({&id, 1}, /*skip_special=*/false);
    if (key.find(kReplacement) != std::string::npos) {
      key = tokenizer.token_text(id);
    } else {
      FATHOM_ASSIGN(key, folder.fold(key));
    }
    const auto next = static_cast<int32_t>(classes.size());
    map[static_cast<size_t>(id)] = classes.try_emplace(std::move(key), next).first->second;
  }
  if (classes.size() != static_cast<size_t>(num_classes)) {
    return Status(StatusCode::kFailedPrecondition,
                  std::to_string(classes.size()) + " Engram classes, the model expects " +
                      std::to_string(num_classes) +
                      ": the tokenizer or the Unicode tables differ from those of the model");
  }
  const int32_t pad_class = map[static_cast<size_t>(pad_token_id)];
  if (pad_token_id == kReleasePad && pad_class != kReleasePad) {
    return Status(StatusCode::kFailedPrecondition,
                  "the pad id 2 has Engram class " + std::to_string(pad_class) +
                      ", expected 2: the tokenizer differs from that of the model");
  }
  return map;
}

}  // namespace fathom::codec
