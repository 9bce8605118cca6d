// write_checkpoint(): the generator's tensors as files.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <string>
#include <system_error>
#include <vector>

#include "model/class_map.h"
#include "model/config_json.h"
#include "model/synthetic.h"
#include "model/synthetic_weights.h"
#include "weights/safetensors.h"
#include "weights/shard_index.h"

namespace fathom::model {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr int64_t kBufferBytes = int64_t{64} << 20;
constexpr std::string_view kPartial = ".partial";

// Files of one folder that appear together or not at all: written as NAME.partial, renamed by
// commit(), removed by the destructor if that did not happen.
class FileSet {
 public:
  explicit FileSet(fs::path dir) : dir_(std::move(dir)) {}
  ~FileSet() {
    if (fd_ >= 0) ::close(fd_);
    if (committed_) return;
    std::error_code ec;
    for (const std::string& name : names_) {
      fs::remove(partial(name), ec);
      fs::remove(dir_ / name, ec);
    }
    if (created_) fs::remove(dir_, ec);
  }
  FileSet(const FileSet&) = delete;
  FileSet& operator=(const FileSet&) = delete;

  Status prepare() {
    std::error_code ec;
    created_ = fs::create_directories(dir_, ec);
    if (ec) return error(dir_, "cannot create the folder", ec.value());
    const bool empty = fs::is_empty(dir_, ec);
    if (ec) return error(dir_, "cannot read the folder", ec.value());
    if (empty) return {};
    return {StatusCode::kFailedPrecondition,
            dir_.string() + ": the folder is not empty; choose a new one"};
  }

  Status begin(const std::string& name) {
    names_.push_back(name);
    fd_ = ::open(partial(name).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return fd_ < 0 ? error(partial(name), "cannot create", errno) : Status();
  }

  Status write(const void* data, size_t size) {
    const char* next = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t n = ::write(fd_, next, size);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return error(partial(names_.back()), "cannot write", errno);
      next += n;
      size -= static_cast<size_t>(n);
    }
    return {};
  }

  Status end() {
    const int result = ::close(std::exchange(fd_, -1));
    return result != 0 ? error(partial(names_.back()), "cannot write", errno) : Status();
  }

  Status add(const std::string& name, std::string_view content) {
    FATHOM_TRY(begin(name));
    FATHOM_TRY(write(content.data(), content.size()));
    return end();
  }

  Status commit() {
    for (const std::string& name : names_) {
      std::error_code ec;
      fs::rename(partial(name), dir_ / name, ec);
      if (ec) return error(partial(name), "cannot rename", ec.value());
    }
    committed_ = true;
    return {};
  }

 private:
  fs::path partial(const std::string& name) const { return dir_ / (name + std::string(kPartial)); }

  static Status error(const fs::path& path, const char* what, int number) {
    const bool full = number == ENOSPC || number == EDQUOT || number == EFBIG;
    return {full ? StatusCode::kResourceExhausted : StatusCode::kFailedPrecondition,
            path.string() + ": " + what + ": " + std::generic_category().message(number)};
  }

  fs::path dir_;
  std::vector<std::string> names_;
  int fd_ = -1;
  bool created_ = false;
  bool committed_ = false;
};

int64_t bytes_of(const TensorSpec& spec) {
  return spec.shape.num_elements() * dtype_bytes(spec.dtype);
}

// [begin, end) of the tensors of each shard.
std::vector<std::pair<size_t, size_t>> plan_shards(std::span<const TensorSpec> specs,
                                                   int64_t max_shard_bytes) {
  std::vector<std::pair<size_t, size_t>> shards;
  size_t begin = 0;
  int64_t bytes = 0;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (i > begin && bytes > max_shard_bytes - bytes_of(specs[i])) {
      shards.emplace_back(begin, i);
      begin = i;
      bytes = 0;
    }
    bytes += bytes_of(specs[i]);
  }
  shards.emplace_back(begin, specs.size());
  return shards;
}

std::string shard_name(size_t i, size_t count) {
  if (count == 1) return std::string(weights::kSingleFileName);
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, count);
  return name;
}

Status write_tensors(const SyntheticWeights& source, size_t begin, size_t end, FileSet* files) {
  std::vector<FillTask> tasks;
  for (size_t i = begin; i < end; ++i) source.append_tasks(i, &tasks);
  std::vector<std::byte> buffer;
  std::vector<std::byte*> targets;
  for (size_t first = 0; first < tasks.size();) {
    // As many tasks as fit, and at least one.
    size_t last = first;
    int64_t bytes = 0;
    while (last < tasks.size() && (last == first || bytes + tasks[last].bytes <= kBufferBytes)) {
      bytes += tasks[last++].bytes;
    }
    buffer.resize(std::max(buffer.size(), static_cast<size_t>(bytes)));
    targets.clear();
    std::byte* target = buffer.data();
    for (size_t t = first; t < last; ++t) {
      targets.push_back(target);
      target += tasks[t].bytes;
    }
    source.fill_all(std::span(tasks).subspan(first, last - first), targets);
    FATHOM_TRY(files->write(buffer.data(), static_cast<size_t>(bytes)));
    first = last;
  }
  return {};
}

Status write_shards(const SyntheticWeights& source, int64_t max_shard_bytes, FileSet* files) {
  const std::span<const TensorSpec> specs = source.specs();
  const auto shards = plan_shards(specs, max_shard_bytes);
  json::object weight_map;
  int64_t total = 0;
  for (size_t s = 0; s < shards.size(); ++s) {
    const auto [begin, end] = shards[s];
    const std::string name = shard_name(s, shards.size());
    std::vector<weights::SafetensorsEntry> entries;
    for (size_t i = begin; i < end; ++i) {
      entries.push_back({specs[i].name, specs[i].dtype, specs[i].shape, 0});
      weight_map[specs[i].name] = name;
      total += bytes_of(specs[i]);
    }
    FATHOM_TRY(files->begin(name));
    const std::string header = weights::make_safetensors_header(entries);
    FATHOM_TRY(files->write(header.data(), header.size()));
    FATHOM_TRY(write_tensors(source, begin, end, files));
    FATHOM_TRY(files->end());
  }
  const json::object index{
      {"metadata",
       {{"total_size", total}, {std::string(kClassMapKey), std::string(kModuloClassMap)}}},
      {"weight_map", std::move(weight_map)}};
  return files->add(std::string(weights::kIndexFileName), json::serialize(index) + "\n");
}

Status check_space(const SyntheticWeights& source, const fs::path& dir) {
  int64_t total = 0;
  for (const TensorSpec& spec : source.specs()) total += bytes_of(spec);
  std::error_code ec;
  const fs::space_info space = fs::space(dir, ec);
  if (ec || space.available >= static_cast<uint64_t>(total)) return {};
  return {StatusCode::kResourceExhausted, dir.string() + ": the checkpoint needs " +
                                              std::to_string(total) + " bytes, the disk has " +
                                              std::to_string(space.available)};
}

Status write_all(const ModelConfig& config, SyntheticKind kind, uint64_t seed, const fs::path& dir,
                 int64_t max_shard_bytes) {
  const SyntheticWeights source(config, kind, seed);
  FileSet files(dir);
  FATHOM_TRY(files.prepare());
  FATHOM_TRY(check_space(source, dir));
  FATHOM_TRY(write_shards(source, max_shard_bytes, &files));
  if (kind == SyntheticKind::kRandom && !config.engram_layers.empty()) {
    const std::vector<int32_t> map = modulo_class_map(config);
    FATHOM_TRY(files.add(std::string(kClassMapFileName),
                         {reinterpret_cast<const char*>(map.data()), map.size() * sizeof(map[0])}));
  }
  // Last: a folder with config.json is a whole one.
  FATHOM_TRY(files.add("config.json", config_json(config)));
  return files.commit();
}

}  // namespace

Status write_checkpoint(const ModelConfig& config, SyntheticKind kind, uint64_t seed,
                        const fs::path& dir, int64_t max_shard_bytes) {
  FATHOM_TRY(config.validate().with_context("synthetic weights"));
  if (max_shard_bytes <= 0) {
    return {StatusCode::kInvalidArgument, "the size of a shard must be positive"};
  }
  try {
    return write_all(config, kind, seed, dir, max_shard_bytes);
  } catch (const std::exception& e) {
    return {StatusCode::kResourceExhausted, dir.string() + ": " + e.what()};
  }
}

}  // namespace fathom::model
