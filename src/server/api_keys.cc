#include "server/api_keys.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace fathom::server {
namespace {

constexpr std::string_view kHashPrefix = "sha256:";
constexpr size_t kMinKeyBytes = 8, kMaxKeyBytes = 512, kMaxKeys = 10'000;

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  size_t at = 0;
  while (true) {
    at = line.find_first_not_of(" \t\r", at);
    if (at == line.npos || line[at] == '#') return words;
    const size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

template <class Digest>
bool read_hex(std::string_view text, Digest* out) {
  if (text.size() != 2 * out->size()) return false;
  for (size_t i = 0; i < out->size(); ++i) {
    const int high = hex_value(text[2 * i]), low = hex_value(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    (*out)[i] = static_cast<unsigned char>(high * 16 + low);
  }
  return true;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' ||
           c == '-' || c == '.';
  });
}

template <class Digest>
Digest digest_of(std::string_view secret) {
  Digest digest{};
  SHA256(reinterpret_cast<const unsigned char*>(secret.data()), secret.size(), digest.data());
  return digest;
}

// "name=7": 7, if it is so.
std::optional<int> limit_of(std::string_view word, std::string_view name) {
  if (!word.starts_with(name) || word.substr(name.size(), 1) != "=") return std::nullopt;
  word.remove_prefix(name.size() + 1);
  int value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < 0) return std::nullopt;
  return value;
}

}  // namespace

Result<ApiKeys> ApiKeys::parse(std::string_view text, std::string_view where,
                               int requests_per_minute, int concurrency) {
  ApiKeys out;
  size_t number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    const std::vector<std::string_view> words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty()) continue;
    const auto wrong = [&](const std::string& what) {
      return Status(StatusCode::kInvalidArgument,
                    std::string(where) + ": line " + std::to_string(number) + ": " + what);
    };
    ApiKey key{std::string(words[0]), requests_per_minute, concurrency};
    if (!is_name(words[0])) {
      return wrong("the first word is the name of the key: letters, digits, _ - and . only");
    }
    if (words.size() < 2) return wrong("there is no key after the name");
    Digest digest{};
    if (words[1].starts_with(kHashPrefix)) {
      if (!read_hex(words[1].substr(kHashPrefix.size()), &digest)) {
        return wrong("sha256: must be followed by 64 hexadecimal digits");
      }
    } else if (words[1].size() < kMinKeyBytes || words[1].size() > kMaxKeyBytes) {
      return wrong("a key has 8 to 512 characters");
    } else {
      digest = digest_of<Digest>(words[1]);
    }
    for (size_t i = 2; i < words.size(); ++i) {
      if (const auto per_minute = limit_of(words[i], "requests_per_minute")) {
        key.requests_per_minute = *per_minute;
      } else if (const auto at_once = limit_of(words[i], "concurrent")) {
        key.concurrency = *at_once;
      } else {
        return wrong("after the key only requests_per_minute=N and concurrent=N may stand");
      }
    }
    if (out.keys_.size() == kMaxKeys) return wrong("more than 10000 keys");
    if (std::find(out.digests_.begin(), out.digests_.end(), digest) != out.digests_.end()) {
      return wrong("this key was there before");
    }
    out.keys_.push_back(std::move(key));
    out.digests_.push_back(digest);
  }
  if (out.keys_.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  std::string(where) + ": has no key; a line is a name and a key");
  }
  return out;
}

int ApiKeys::find(std::string_view secret) const {
  if (secret.size() > kMaxKeyBytes) return -1;
  const Digest digest = digest_of<Digest>(secret);
  int found = -1;
  for (size_t i = 0; i < digests_.size(); ++i) {
    const bool equal = CRYPTO_memcmp(digest.data(), digests_[i].data(), digest.size()) == 0;
    found = equal ? static_cast<int>(i) : found;
  }
  return found;
}

}  // namespace fathom::server
