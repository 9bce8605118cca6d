// How fast parameters come to the GPU: from memory, from files in the page cache, from a disk.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "cuda/gpu_bench.h"
#include "model/class_map.h"
#include "model/presets.h"
#include "model/synthetic.h"

namespace fathom::gpu_bench {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPiece = int64_t{4} << 20;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// GB/s at which the threads that stage parameters read them, without a link behind.
double read_rate(const weights::Checkpoint& checkpoint, ThreadPool& pool) {
  std::vector<std::pair<const std::byte*, int64_t>> pieces;
  int64_t total = 0;
  for (const weights::NamedTensor& t : checkpoint.tensors()) {
    const auto* data = reinterpret_cast<const std::byte*>(t.view.data);
    for (int64_t at = 0; at < t.view.num_bytes() && total < int64_t{16} << 30; at += kPiece) {
      pieces.emplace_back(data + at, std::min(kPiece, t.view.num_bytes() - at));
      total += pieces.back().second;
    }
  }
  std::vector<std::vector<std::byte>> to(static_cast<size_t>(pool.num_threads()));
  for (auto& buffer : to) buffer.resize(static_cast<size_t>(kPiece));
  const double start = now_s();
  pool.parallel_for(std::ssize(pieces), [&](int64_t i, int thread) {
    const auto& [from, bytes] = pieces[static_cast<size_t>(i)];
    std::copy_n(from, bytes, to[static_cast<size_t>(thread)].begin());
  });
  return static_cast<double>(total) / 1e9 / (now_s() - start);
}

// Files that the page cache has not.
class ColdFiles {
 public:
  explicit ColdFiles(const fs::path& dir) {
    for (const auto& entry : fs::directory_iterator(dir)) {
      files_.push_back({::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC),
                        static_cast<int64_t>(entry.file_size())});
    }
  }
  ~ColdFiles() {
    for (const File& f : files_) ::close(f.fd);
  }
  ColdFiles(const ColdFiles&) = delete;
  ColdFiles& operator=(const ColdFiles&) = delete;

  void forget() const {
    for (const File& f : files_) {
      (void)::fsync(f.fd);
      (void)::posix_fadvise(f.fd, 0, 0, POSIX_FADV_DONTNEED);
    }
  }
  // GB/s of read() by all threads.
  double read_rate(ThreadPool& pool) const {
    forget();
    std::vector<std::pair<int, int64_t>> pieces;
    for (const File& f : files_) {
      for (int64_t at = 0; at < f.bytes; at += kPiece) pieces.emplace_back(f.fd, at);
    }
    std::vector<std::vector<std::byte>> to(static_cast<size_t>(pool.num_threads()));
    for (auto& buffer : to) buffer.resize(static_cast<size_t>(kPiece));
    std::vector<int64_t> total(to.size());
    const double start = now_s();
    pool.parallel_for(std::ssize(pieces), [&](int64_t i, int thread) {
      const auto& [fd, at] = pieces[static_cast<size_t>(i)];
      auto& buffer = to[static_cast<size_t>(thread)];
      total[static_cast<size_t>(thread)] += ::pread(fd, buffer.data(), buffer.size(), at);
    });
    double bytes = 0;
    for (const int64_t n : total) bytes += static_cast<double>(n);
    return bytes / 1e9 / (now_s() - start);
  }

 private:
  struct File {
    int fd;
    int64_t bytes;
  };
  std::vector<File> files_;
};

}  // namespace

std::unique_ptr<model::Model> Bench::place(const model::ModelConfig& config,
                                           const weights::Checkpoint& checkpoint, bool host_experts,
                                           const std::string& from, double source_rate) {
  const double link = measure_link_rate(handle_) / 1e9;
  if (source_rate == 0) source_rate = read_rate(checkpoint, stream_->pool());
  auto model = must(model::Model::create(config, checkpoint, model::modulo_class_map(config), ops_,
                                         128, *stream_, device_,
                                         {.drafts = false, .host_experts = host_experts}));
  const model::PlacedBytes& placed = model->placed_bytes();
  const double bytes = static_cast<double>(placed.on_device() - placed.arena + placed.on_host());
  const double rate = bytes / 1e9 / model->placing_s();
  std::printf(
      "\n%d layers, %d experts a layer, from %s, experts in %s: %.1f GB placed in %.2f s, %.1f "
      "GB/s "
      "(%.2f of the less of: pinned memory to the GPU %.1f GB/s; %d threads read %.1f GB/s)\n",
      config.num_layers, config.num_experts, from.c_str(), host_experts ? "host memory" : "HBM",
      bytes / 1e9, model->placing_s(), rate, rate / std::min(link, source_rate), link,
      stream_->pool().num_threads(), source_rate);
  std::fflush(stdout);
  return model;
}

void Bench::placing(int32_t layers, int32_t num_experts, const std::string& dir) {
  const model::ModelConfig config = must(model::release_slice(layers, num_experts, 65536));
  {
    const auto in_memory = must(model::make_synthetic(config, model::SyntheticKind::kRandom, 1));
    for (int i = 0; i < 3; ++i) (void)place(config, in_memory, false, "memory");
  }
  if (dir.empty()) return;
  if (const Status status =
          model::write_checkpoint(config, model::SyntheticKind::kRandom, 1, dir, int64_t{4} << 30);
      !status.ok()) {
    fail(status);
  }
  {
    const ColdFiles files(dir);
    const double disk = files.read_rate(stream_->pool());
    const auto open = [&] { return must(weights::Checkpoint::open(dir)); };
    files.forget();
    (void)place(config, open(), false, "files on the disk", disk);
    const double cached = read_rate(open(), stream_->pool());
    (void)place(config, open(), false, "files in the page cache", cached);
  }
  fs::remove_all(dir);
}

}  // namespace fathom::gpu_bench
