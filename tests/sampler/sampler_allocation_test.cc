#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "sampler/sampler.h"

namespace {
std::atomic<int64_t> num_allocations{0};
}

// Not inlined: the compiler would take malloc and delete, seen without the wrappers, for a
// mismatch.
__attribute__((noinline)) void* operator new(size_t size) {
  ++num_allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
__attribute__((noinline)) void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++num_allocations;
  return std::malloc(size == 0 ? 1 : size);
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace fathom::sampler {
namespace {

TEST(Sampler, SteadyStateAllocatesNothing) {
  Sampler sampler(5000);
  std::vector<float> logits(5000);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i * 7919 % 5000) / 500;
  const std::vector<uint32_t> allowed((5000 + 31) / 32, ~0u);
  const std::vector<int32_t> history = {1, 2, 3, 2};
  SamplingParams params;
  params.top_k = 1000;
  params.top_p = 0.99f;
  params.min_p = 0.001f;
  params.presence_penalty = 1;
  params.logit_bias = {{7, 1.0f}};
  params.logprobs = 0;
  params.allowed_ids.resize(4000);
  for (size_t i = 0; i < 4000; ++i) params.allowed_ids[i] = static_cast<int32_t>(i);
  params.bad_words = {{5}, {3, 2, 9}};
  const std::vector<int32_t> forbidden = {11};

  const int64_t before = num_allocations;
  for (int position = 0; position < 1000; ++position) {
    Result<Sample> sample =
        sampler.sample(logits, params, 1, position, {history, history}, allowed, forbidden);
    if (!sample) FAIL() << sample.error().to_string();
  }
  EXPECT_EQ(num_allocations - before, 0);
}

}  // namespace
}  // namespace fathom::sampler
