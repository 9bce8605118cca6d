#include <cstdio>

#include "check_vectors/ops.h"

namespace fathom::check_vectors {

const codec::Tokenizer* Context::tokenizer(codec::ModelVersion version) {
  const bool is_v4 = version == codec::ModelVersion::kV4Pro;
  std::unique_ptr<codec::Tokenizer>& tokenizer = is_v4 ? v4_ : v41_;
  if (tokenizer == nullptr && !tokenizer_dir_.empty()) {
    const std::string file =
        tokenizer_dir_ + (is_v4 ? "/tokenizer_v4.json" : "/tokenizer_v41.json");
    Result<std::unique_ptr<codec::Tokenizer>> loaded = codec::Tokenizer::load(file);
    if (!loaded) {
      std::fprintf(stderr, "check_vectors: %s\n", loaded.error().to_string().c_str());
      tokenizer_dir_.clear();
      return nullptr;
    }
    tokenizer = *std::move(loaded);
  }
  return tokenizer.get();
}

std::string_view text_of(const codec::JsonObject& vector, std::string_view key) {
  const codec::JsonValue* value = vector.find(key);
  const std::string* text = value != nullptr ? value->if_string() : nullptr;
  return text != nullptr ? std::string_view(*text) : std::string_view();
}

int64_t integer_of(const codec::JsonObject& vector, std::string_view key, int64_t fallback) {
  const codec::JsonValue* value = vector.find(key);
  const int64_t* integer = value != nullptr ? value->if_int64() : nullptr;
  return integer != nullptr ? *integer : fallback;
}

codec::ModelVersion version_of(const codec::JsonObject& vector) {
  return text_of(vector, "encoding") == "v4" ? codec::ModelVersion::kV4Pro
                                             : codec::ModelVersion::kV41Flash;
}

}  // namespace fathom::check_vectors
