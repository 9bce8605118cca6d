#include "server/response_store.h"

#include <gtest/gtest.h>

namespace fathom::server {
namespace {

ResponseStore::Stored of(size_t bytes) {
  return {.items = std::string(bytes, 'x'), .response = {}};
}

TEST(ResponseStore, FindsByOwnerUntilTheTimeIsOver) {
  ResponseStore store(1 << 20, /*ttl_s=*/10);
  store.put("alice", "r1", {.items = "[1]", .response = "{}"}, 100);
  ASSERT_TRUE(store.get("alice", "r1", 109));
  EXPECT_EQ(store.get("alice", "r1", 109)->items, "[1]");
  EXPECT_FALSE(store.get("bob", "r1", 101));
  EXPECT_FALSE(store.get("", "alice\nr1", 101));
  EXPECT_FALSE(store.get("alice", "r1", 110));
  EXPECT_EQ(store.bytes(), 0u);
}

TEST(ResponseStore, DropsTheLeastRecentlyUsedFirst) {
  ResponseStore store(5000, 1000);
  for (const char* id : {"a", "b", "c", "d"}) store.put("k", id, of(900), 0);
  EXPECT_TRUE(store.get("k", "a", 1));  // used again
  store.put("k", "e", of(900), 2);
  EXPECT_TRUE(store.get("k", "a", 3));
  EXPECT_FALSE(store.get("k", "b", 3));
  EXPECT_LE(store.bytes(), 5000u);
}

TEST(ResponseStore, KeepsNothingThatWouldPushAllOthersOut) {
  ResponseStore store(4000, 1000);
  store.put("k", "small", of(10), 0);
  store.put("k", "big", of(3000), 0);
  EXPECT_FALSE(store.get("k", "big", 1));
  EXPECT_TRUE(store.get("k", "small", 1));
  EXPECT_TRUE(store.erase("k", "small"));
  EXPECT_FALSE(store.erase("k", "small"));
  EXPECT_EQ(store.size(), 0u);
  EXPECT_EQ(store.bytes(), 0u);
}

TEST(ResponseStore, AnIdIsReplaced) {
  ResponseStore store(4000, 1000);
  store.put("k", "a", of(100), 0);
  store.put("k", "a", of(50), 0);
  EXPECT_EQ(store.size(), 1u);
  EXPECT_EQ(store.get("k", "a", 1)->items.size(), 50u);
}

}  // namespace
}  // namespace fathom::server
