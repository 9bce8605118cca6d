// Picked records come, once or often picked; the others stay as they were.
#include <gtest/gtest.h>

#include <vector>

#include "harness/kernel_harness.h"
#include "harness/random_values.h"
#include "kernels/ops.h"

namespace fathom::kernels {
namespace {

TEST(FetchPicked, BringsThePickedRecordsAndNothingElse) {
  fathom::harness::Random random(5);
  for (const Kernel<FetchPickedArgs>& kernel : fetch_picked_kernels(harness::tested_device())) {
    for (const int64_t num_records : {1, 31, 32, 100, 384}) {
      for (const int64_t record_bytes : {16, 4096, 65536, 65552, 200000}) {
        if (num_records * record_bytes > 3'000'000) continue;
        for (const int64_t num_picks : {0, 1, 6, 500}) {
          const auto bytes = static_cast<size_t>(num_records * record_bytes);
          std::vector<std::byte> from(bytes), to(bytes, std::byte{0x5a});
          const auto salt = static_cast<size_t>(random.below(251));
          for (size_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>((i / 7 + salt) * 31);
          std::vector<int32_t> picks;
          for (int64_t i = 0; i < num_picks; ++i) {
            picks.push_back(static_cast<int32_t>(random.below(num_records)));
          }
          std::vector<std::byte> want = to;
          for (const int32_t r : picks) {
            std::copy_n(from.begin() + r * record_bytes, record_bytes,
                        want.begin() + r * record_bytes);
          }
          harness::run_kernel(kernel, {picks.data(), from.data(), to.data(), num_picks, num_records,
                                       record_bytes, nullptr});
          EXPECT_EQ(to == want, true) << kernel.name << ": " << num_picks << " of " << num_records
                                      << " records of " << record_bytes;
        }
      }
    }
  }
}

}  // namespace
}  // namespace fathom::kernels
