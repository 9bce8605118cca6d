#include "weights/checkpoint.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <exception>
#include <map>
#include <unordered_map>
#include <utility>

#include "device/process_memory.h"
#include "weights/mapped_file.h"
#include "weights/safetensors.h"
#include "weights/shard_index.h"

namespace fathom::weights {

struct Checkpoint::Impl {
  std::string origin;
  std::vector<NamedTensor> tensors;  // by name
  std::vector<MappedFile> files;
  std::shared_ptr<void> storage;
  int64_t total_bytes = 0;
};

namespace {

namespace fs = std::filesystem;

Status add_file(const fs::path& path, std::vector<MappedFile>* files,
                std::vector<NamedTensor>* tensors) {
  FATHOM_ASSIGN(MappedFile file, MappedFile::open(path));
  FATHOM_ASSIGN(std::vector<SafetensorsEntry> entries,
                parse_safetensors(file.bytes(), path.string()));
  const std::string name = path.string();
  for (SafetensorsEntry& e : entries) {
    tensors->push_back(
        {std::move(e.name), TensorView{file.bytes().data() + e.offset, e.dtype, e.shape}, name});
  }
  files->push_back(std::move(file));
  return {};
}

// All shards must be there before the first is opened: a list of what is missing helps more than a
// name.
Status check_shards_exist(const fs::path& dir, const ShardIndex& index) {
  std::vector<std::string> missing;
  for (const std::string& shard : index.shards) {
    std::error_code ec;
    if (!fs::exists(dir / shard, ec)) missing.push_back(shard);
  }
  if (missing.empty()) return {};
  std::string list;
  for (size_t i = 0; i < std::min<size_t>(missing.size(), 3); ++i) {
    list += (i > 0 ? ", " : "") + missing[i];
  }
  if (missing.size() > 3) list += ", ...";
  return {StatusCode::kNotFound, dir.string() + ": " + std::to_string(missing.size()) + " of " +
                                     std::to_string(index.shards.size()) + " shards are missing (" +
                                     list + "); finish the download"};
}

// Every tensor lies in the shard that the index names, and the index names every tensor.
Status check_against_index(const fs::path& dir, const ShardIndex& index,
                           std::span<const NamedTensor> tensors) {
  std::unordered_map<std::string_view, std::string_view> found;
  found.reserve(tensors.size());
  for (const NamedTensor& t : tensors) {
    const auto [it, fresh] = found.emplace(t.name, t.file);
    if (!fresh) {
      return {StatusCode::kDataLoss,
              t.file + ": tensor \"" + t.name + "\" lies in " + std::string(it->second) + " too"};
    }
    const auto entry = index.weight_map.find(t.name);
    if (entry == index.weight_map.end()) {
      return {StatusCode::kDataLoss, t.file + ": tensor \"" + t.name + "\" is not in " +
                                         std::string(kIndexFileName) +
                                         ": index and shards do not belong together"};
    }
    if ((dir / entry->second).string() != t.file) {
      return {StatusCode::kDataLoss, t.file + ": tensor \"" + t.name + "\" is here, but " +
                                         std::string(kIndexFileName) + " says " + entry->second};
    }
  }
  for (const auto& [name, shard] : index.weight_map) {
    if (!found.contains(name)) {
      return {StatusCode::kDataLoss, (dir / shard).string() + ": tensor \"" + name +
                                         "\" is missing, though " + std::string(kIndexFileName) +
                                         " says it is here"};
    }
  }
  return {};
}

Status check_folder(const fs::path& dir) {
  std::error_code ec;
  const fs::file_status status = fs::status(dir, ec);
  if (!fs::exists(status)) {
    return {StatusCode::kNotFound, dir.string() + ": no such folder"};
  }
  if (!fs::is_directory(status)) {
    return {StatusCode::kInvalidArgument,
            dir.string() + ": not a folder; give the folder that holds config.json"};
  }
  return {};
}

Status read_folder(const fs::path& dir, std::vector<MappedFile>* files,
                   std::vector<NamedTensor>* tensors) {
  FATHOM_TRY(check_folder(dir));
  std::error_code ec;
  if (fs::exists(dir / kIndexFileName, ec)) {
    FATHOM_ASSIGN(const ShardIndex index, read_shard_index(dir / kIndexFileName));
    FATHOM_TRY(check_shards_exist(dir, index));
    for (const std::string& shard : index.shards) {
      FATHOM_TRY(add_file(dir / shard, files, tensors));
    }
    return check_against_index(dir, index, *tensors);
  }
  if (!fs::exists(dir / kSingleFileName, ec)) {
    return {StatusCode::kNotFound, dir.string() + ": no " + std::string(kSingleFileName) +
                                       " and no " + std::string(kIndexFileName) +
                                       ": not a checkpoint in the released format"};
  }
  return add_file(dir / kSingleFileName, files, tensors);
}

}  // namespace

Checkpoint::Checkpoint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  std::ranges::sort(impl_->tensors, {}, &NamedTensor::name);
  for (const NamedTensor& t : impl_->tensors) impl_->total_bytes += t.view.num_bytes();
}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

Result<Checkpoint> Checkpoint::open(const fs::path& dir) {
  try {
    auto impl = std::make_unique<Impl>();
    impl->origin = dir.string();
    FATHOM_TRY(read_folder(dir, &impl->files, &impl->tensors));
    return Checkpoint(std::move(impl));
  } catch (const std::exception& e) {  // out of memory, a path that cannot be converted
    return Status(StatusCode::kResourceExhausted, dir.string() + ": " + e.what());
  }
}

Checkpoint Checkpoint::from_memory(std::vector<NamedTensor> tensors,
                                   std::shared_ptr<void> storage) {
  auto impl = std::make_unique<Impl>();
  impl->origin = "memory";
  impl->tensors = std::move(tensors);
  impl->storage = std::move(storage);
  return Checkpoint(std::move(impl));
}

const NamedTensor* Checkpoint::find(std::string_view name) const {
  const auto it =
      std::ranges::lower_bound(impl_->tensors, name, std::ranges::less{},
                               [](const NamedTensor& t) -> std::string_view { return t.name; });
  return it == impl_->tensors.end() || it->name != name ? nullptr : &*it;
}

std::span<const NamedTensor> Checkpoint::tensors() const { return impl_->tensors; }
std::optional<int64_t> Checkpoint::resident_bytes() const {
  std::vector<std::span<const std::byte>> ranges;
  for (const NamedTensor& t : impl_->tensors) {
    ranges.emplace_back(t.view.data, static_cast<size_t>(t.view.num_bytes()));
  }
  return fathom::resident_bytes(ranges);
}

int64_t Checkpoint::total_bytes() const { return impl_->total_bytes; }
const std::string& Checkpoint::origin() const { return impl_->origin; }

}  // namespace fathom::weights
