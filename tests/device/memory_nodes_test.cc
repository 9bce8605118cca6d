// Lists of nodes, and whose pages they are spread for.  What it gains takes a machine of several
// nodes.

#include "device/memory_nodes.h"

#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

namespace fathom {
namespace {

int policy() {
  int mode = -1;
  return syscall(SYS_get_mempolicy, &mode, nullptr, 0, nullptr, 0) == 0 ? mode : -1;
}

TEST(MemoryNodes, ListsAreThoseOfTheKernel) {
  EXPECT_EQ(parse_number_list("0"), std::vector<int>({0}));
  EXPECT_EQ(parse_number_list("0-3,8,10-11"), std::vector<int>({0, 1, 2, 3, 8, 10, 11}));
  for (const char* text : {"", ",", "0,", "a", "1-", "1-b", "-1", "0;1", "4096", "0-99999999999"}) {
    EXPECT_TRUE(parse_number_list(text).empty()) << text;
  }
  EXPECT_FALSE(memory_nodes().empty());
}

TEST(MemoryNodes, PagesAreSpreadForThisThreadAndThoseItStarts) {
  if (policy() != MPOL_DEFAULT) GTEST_SKIP() << "the kernel tells no policy, or one is set";
  int of_worker = -1;
  std::thread worker;
  {
    const SpreadMemory spread(memory_nodes(), 1);
    if (!spread.is_on()) GTEST_SKIP() << "the kernel allows no policy here";
    EXPECT_EQ(policy(), MPOL_INTERLEAVE);
    worker = std::thread([&] { of_worker = policy(); });
    const SpreadMemory again(memory_nodes(), 1);  // what is set is left alone
    EXPECT_FALSE(again.is_on());
  }
  worker.join();
  EXPECT_EQ(of_worker, MPOL_INTERLEAVE);
  EXPECT_EQ(policy(), MPOL_DEFAULT);
  const SpreadMemory nothing(std::vector<int>{0});  // one node needs no policy
  EXPECT_FALSE(nothing.is_on());
}

}  // namespace
}  // namespace fathom
