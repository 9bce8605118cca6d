#include "weights/shard_index.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>

#include "weights/mapped_file.h"
#include "weights/strict_json.h"

namespace fathom::weights {
namespace {

namespace json = boost::json;

bool is_plain_file_name(std::string_view name) {
  if (name.empty() || name.size() > 255 || name.front() == '.') return false;
  return std::ranges::all_of(name, [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u > 0x20 && u != 0x7f && c != '/' && c != '\\' && c != ':';
  });
}

Status damaged(std::string_view where, const std::string& what) {
  return {StatusCode::kDataLoss, std::string(where) + ": " + what};
}

}  // namespace

Result<ShardIndex> parse_shard_index(std::string_view text, std::string_view where) {
  FATHOM_ASSIGN(const json::value root, parse_strict_json(text, where));
  const json::object* object = root.if_object();
  const json::value* map = object == nullptr ? nullptr : object->if_contains("weight_map");
  const json::object* entries = map == nullptr ? nullptr : map->if_object();
  if (entries == nullptr) return damaged(where, "no \"weight_map\" object");
  if (entries->empty()) return damaged(where, "\"weight_map\" is empty");

  ShardIndex index;
  index.weight_map.reserve(entries->size());
  for (const auto& entry : *entries) {
    std::string tensor(entry.key().data(), entry.key().size());
    const json::string* file = entry.value().if_string();
    if (file == nullptr || !is_plain_file_name({file->data(), file->size()})) {
      return damaged(where,
                     "tensor \"" + tensor + "\": the shard must be a file name in the same folder");
    }
    index.shards.emplace_back(file->data(), file->size());
    index.weight_map.emplace(std::move(tensor), index.shards.back());
  }
  std::ranges::sort(index.shards);
  const auto repeated = std::ranges::unique(index.shards);
  index.shards.erase(repeated.begin(), repeated.end());

  const json::value* metadata = object->if_contains("metadata");
  if (metadata != nullptr && metadata->is_object()) {
    for (const auto& entry : metadata->get_object()) {
      if (const json::string* value = entry.value().if_string()) {
        index.metadata.emplace(std::string(entry.key().data(), entry.key().size()),
                               std::string(value->data(), value->size()));
      }
    }
  }
  return index;
}

Result<ShardIndex> read_shard_index(const std::filesystem::path& path) {
  FATHOM_ASSIGN(const MappedFile file, MappedFile::open(path));
  const std::span<const std::byte> bytes = file.bytes();
  return parse_shard_index({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                           path.string());
}

}  // namespace fathom::weights
