// model.safetensors.index.json: which shard holds which tensor.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fathom/status.h"

namespace fathom::weights {

inline constexpr std::string_view kIndexFileName = "model.safetensors.index.json";
inline constexpr std::string_view kSingleFileName = "model.safetensors";

struct ShardIndex {
  std::unordered_map<std::string, std::string>
      weight_map;                               // tensor -> file name in the same folder
  std::vector<std::string> shards;              // the file names, sorted, each once
  std::map<std::string, std::string> metadata;  // entries of "metadata" that are strings
};

// Parses the text of an index; `where` names it in errors.  A file name that is more than a name (a
// path,
// "..", control characters) is refused: an index must not read outside of its folder.
Result<ShardIndex> parse_shard_index(std::string_view json, std::string_view where);

Result<ShardIndex> read_shard_index(const std::filesystem::path& path);

}  // namespace fathom::weights
