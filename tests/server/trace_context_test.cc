#include "server/trace_context.h"

#include <gtest/gtest.h>

namespace fathom::server {
namespace {

constexpr const char* kGiven = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(TraceContext, KeepsTheTraceAndMakesASpanOfItsOwn) {
  const auto trace = continue_trace(kGiven);
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(trace->trace_id, "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(trace->parent_id, "b7ad6b7169203331");
  EXPECT_EQ(trace->span_id.size(), 16u);
  EXPECT_NE(trace->span_id, trace->parent_id);
  EXPECT_EQ(trace->header(), "00-0af7651916cd43dd8448eb211c80319c-" + trace->span_id + "-01");
  const auto again = continue_trace(trace->header());
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->parent_id, trace->span_id);
  EXPECT_NE(again->span_id, trace->span_id);
}

TEST(TraceContext, LaterVersionsMayBeLonger) {
  const std::string rest = std::string(kGiven).substr(2);
  EXPECT_TRUE(continue_trace("cc" + rest).has_value());
  EXPECT_TRUE(continue_trace("cc" + rest + "-more").has_value());
  EXPECT_FALSE(continue_trace("cc" + rest + "more").has_value());
  EXPECT_FALSE(continue_trace("ff" + rest).has_value());
}

TEST(TraceContext, AnythingElseIsIgnored) {
  for (const char* text : {"", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
                           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
                           "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
                           "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                           "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                           "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                           "0g-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-xx"}) {
    EXPECT_FALSE(continue_trace(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace fathom::server
