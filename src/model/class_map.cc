#include "model/class_map.h"

#include <cstring>
#include <string>

#include "weights/mapped_file.h"
#include "weights/shard_index.h"

namespace fathom::model {
namespace {

namespace fs = std::filesystem;

// In V4.1 the ids 0, 1, 2 are three different control tokens, so pad 2 has class 2.
constexpr int32_t kReleasePad = 2;

Status check_numbering(const ModelConfig& config, const std::vector<int32_t>& map) {
  int32_t next = 0;
  for (size_t id = 0; id < map.size(); ++id) {
    if (map[id] < 0 || map[id] > next) {
      return {StatusCode::kDataLoss, "id " + std::to_string(id) + " has class " +
                                         std::to_string(static_cast<uint32_t>(map[id])) +
                                         ", expected at most " + std::to_string(next)};
    }
    if (map[id] == next) ++next;
  }
  if (next != config.engram_compressed_vocab_size) {
    return {StatusCode::kDataLoss, std::to_string(next) + " classes, config.json expects " +
                                       std::to_string(config.engram_compressed_vocab_size)};
  }
  const int32_t pad = config.engram_pad_token_id;
  if (pad == kReleasePad && map[static_cast<size_t>(pad)] != pad) {
    return {
        StatusCode::kDataLoss,
        "the pad id 2 has class " + std::to_string(map[static_cast<size_t>(pad)]) + ", expected 2"};
  }
  return {};
}

Result<std::vector<int32_t>> read_map(const fs::path& path, const ModelConfig& config) {
  FATHOM_ASSIGN(const weights::MappedFile file, weights::MappedFile::open(path));
  std::vector<int32_t> map(static_cast<size_t>(config.vocab_size));
  const size_t expected = map.size() * sizeof(map[0]);
  if (file.bytes().size() != expected) {
    return Status(StatusCode::kDataLoss,
                  path.string() + ": " + std::to_string(file.bytes().size()) + " bytes, expected " +
                      std::to_string(expected) + " (4 for each of the " +
                      std::to_string(config.vocab_size) + " ids of config.json)");
  }
  std::memcpy(map.data(), file.bytes().data(), expected);
  FATHOM_TRY(check_numbering(config, map).with_context(path.string()));
  return map;
}

bool is_generated(const fs::path& dir) {
  const Result<weights::ShardIndex> index =
      weights::read_shard_index(dir / weights::kIndexFileName);
  if (!index) return false;
  const auto entry = index->metadata.find(std::string(kClassMapKey));
  return entry != index->metadata.end() && entry->second == kModuloClassMap;
}

}  // namespace

std::vector<int32_t> modulo_class_map(const ModelConfig& config) {
  std::vector<int32_t> map(static_cast<size_t>(config.vocab_size));
  for (int32_t id = 0; id < config.vocab_size; ++id) {
    map[static_cast<size_t>(id)] = id % config.engram_compressed_vocab_size;
  }
  return map;
}

Result<std::vector<int32_t>> load_class_map(const fs::path& dir, const ModelConfig& config) {
  if (config.engram_layers.empty()) return std::vector<int32_t>{};
  std::error_code ec;
  if (fs::exists(dir / kClassMapFileName, ec)) return read_map(dir / kClassMapFileName, config);
  if (!fs::exists(dir / "tokenizer.json", ec) && is_generated(dir)) return modulo_class_map(config);
  const bool has_tokenizer = fs::exists(dir / "tokenizer.json", ec);
  return Status(StatusCode::kNotFound,
                dir.string() + ": no " + std::string(kClassMapFileName) +
                    " (the Engram class of each token id)" +
                    (has_tokenizer ? "; make the classes from tokenizer.json and load the model "
                                     "with them"
                                   : " and no tokenizer.json to make it from; add one of them"));
}

}  // namespace fathom::model
