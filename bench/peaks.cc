#include "bench/peaks.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "bench/peak_loops.h"
#include "device/thread_pool.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace fathom::bench {
namespace {

constexpr size_t kReadBytes = size_t{1} << 30;
// How far apart the 16 streams of a thread are best differs from machine to machine, by as much as
// half.
constexpr size_t kPieceBytes[] = {size_t{1} << 18, size_t{1} << 20, size_t{1} << 24};
constexpr size_t kGreatestPiece = kPieceBytes[2];
constexpr int kReadPasses = 4;
constexpr double kReadSeconds = 0.4;  // a piece size, at most; at least one pass
// About 1 ms each: neighbours leave at least some of them alone, and the best counts.
constexpr int64_t kComputeRounds = 50'000;
constexpr int kComputePasses = 100;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

const PeakLoops& loops_of(Isa isa) {
  if (isa == Isa::kAvx512) return avx512_peak_loops();
  if (isa == Isa::kAvxVnni) return avxvnni_peak_loops();
  if (isa == Isa::kAvx2) return avx2_peak_loops();
  return plain_peak_loops();
}

struct FreeBytes {
  void operator()(std::byte* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<std::byte, FreeBytes>;

Buffer allocate(size_t& bytes) {
  for (bytes = kReadBytes; bytes >= kGreatestPiece; bytes /= 2) {
    Buffer buffer(static_cast<std::byte*>(std::aligned_alloc(kGreatestPiece, bytes)));
    if (buffer == nullptr) continue;
#if defined(__linux__)
    madvise(buffer.get(), bytes, MADV_HUGEPAGE);  // advice: a refusal costs 5 % of the rate
#endif
    return buffer;
  }
  return nullptr;
}

double measure_read(ThreadPool& pool, const PeakLoops& loops) {
  size_t bytes = 0;
  const Buffer buffer = allocate(bytes);
  if (buffer == nullptr) return 0;
  double best = 0;
  for (const size_t piece : kPieceBytes) {
    const auto pieces = static_cast<int64_t>(bytes / piece);
    const auto data = [&](int64_t i) { return buffer.get() + static_cast<size_t>(i) * piece; };
    // A page that nobody wrote is the same zero page everywhere, and would be read from a cache.
    if (piece == kPieceBytes[0]) {
      pool.parallel_for(pieces, [&](int64_t i, int) { std::memset(data(i), 1, piece); });
    }
    std::atomic<uint64_t> sink{0};
    const double deadline = seconds() + kReadSeconds;
    for (int pass = 0; pass < kReadPasses && (pass == 0 || seconds() < deadline); ++pass) {
      const double start = seconds();
      pool.parallel_for(pieces, [&](int64_t i, int) {
        sink.fetch_add(loops.read(data(i), piece), std::memory_order_relaxed);
      });
      best = std::max(best, static_cast<double>(bytes) / (seconds() - start));
    }
  }
  return best;
}

// Best rate of one thread at a time would ignore what threads take from each other: all run at
// once, and the best pass of each counts.
double measure_compute(ThreadPool& pool, double (*loop)(int64_t, uint64_t&)) {
  const int num_threads = pool.num_threads();
  std::vector<double> best(static_cast<size_t>(num_threads), 0);
  std::atomic<uint64_t> sink{0};
  std::atomic<int> running{0};
  pool.parallel_for(num_threads, [&](int64_t item, int) {
    running.fetch_add(1);
    uint64_t mine = 0;
    // Wait for the others, but not for long: one thread may have taken two items.
    const double give_up = seconds() + 0.02;
    while (running.load() < num_threads && seconds() < give_up) {
    }
    for (int pass = 0; pass < kComputePasses; ++pass) {
      const double start = seconds();
      const double done = loop(kComputeRounds, mine);
      best[static_cast<size_t>(item)] =
          std::max(best[static_cast<size_t>(item)], done / (seconds() - start));
    }
    sink.fetch_add(mine);
  });
  double sum = 0;
  for (const double rate : best) sum += rate;
  return sum;
}

}  // namespace

Peaks measure_peaks(int num_threads, Isa isa) {
  ThreadPool pool(num_threads);
  const PeakLoops& loops = loops_of(std::min(isa, Isa::kAvx512));
  return {.dram_read_gb_s = measure_read(pool, loops) / 1e9,
          .int8_gop_s = measure_compute(pool, loops.int8) / 1e9,
          .amx_gop_s = isa == Isa::kAmx ? measure_compute(pool, amx_int8_peak_loop) / 1e9 : 0,
          .fp32_gflop_s = measure_compute(pool, loops.fp32) / 1e9};
}

}  // namespace fathom::bench
