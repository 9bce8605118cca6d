#include "codec/json_text.h"

#include <gtest/gtest.h>

namespace fathom::codec {
namespace {

std::string compact(std::string_view text) {
  const Result<JsonValue> value = parse_json(text);
  EXPECT_TRUE(value) << text << ": " << value.error().message();
  return value ? write_json(*value, JsonStyle::kCompact) : "";
}

std::string error(std::string_view text) {
  const Result<JsonValue> value = parse_json(text);
  EXPECT_FALSE(value) << text;
  return value ? "" : value.error().message();
}

TEST(JsonText, ARepeatedKeyKeepsItsFirstPlaceAndLastValue) {
  EXPECT_EQ(compact(R"({"a":1,"b":2,"a":3,"c":4,"b":5})"), R"({"a":3,"b":5,"c":4})");
  std::string many = "{";
  for (int i = 0; i < 100; ++i) many += "\"k" + std::to_string(i) + "\":0,";
  EXPECT_EQ(parse_json(many + R"("k7":1})")->find("k7")->if_int64() != nullptr, true);
  EXPECT_EQ(*parse_json(many + R"("k7":1})")->find("k7")->if_int64(), 1);
  EXPECT_EQ(parse_json(many + R"("k7":1})")->if_object()->size(), 100u);
}

TEST(JsonText, IntegersStayIntegersAsFarAsTheyFit) {
  EXPECT_EQ(compact("18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(compact("-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(compact("18446744073709551616"), "1.8446744073709552e+19");
  EXPECT_EQ(compact("-0"), "-0.0");
  EXPECT_EQ(compact("1e-400"), "0.0");
  EXPECT_EQ(compact("1E3"), "1000.0");
}

TEST(JsonText, StylesDifferInSeparatorsAndSmallNumbers) {
  const JsonValue value = *parse_json(R"({"a":[1.5e-7,0.00001,"é\u2028/\u007f\u0001"]})");
  EXPECT_EQ(write_json(value, JsonStyle::kCompact),
            "{\"a\":[1.5e-7,0.00001,\"é\u2028/\x7f\\u0001\"]}");
  EXPECT_EQ(write_json(value, JsonStyle::kPython),
            "{\"a\": [1.5e-07, 1e-05, \"é\u2028/\x7f\\u0001\"]}");
  EXPECT_EQ(write_json(value, JsonStyle::kPythonV4),
            "{\"a\": [1.5e-7, 0.00001, \"é\u2028/\x7f\\u0001\"]}");
}

// Strings are read in blocks: what is within one must not depend on where it stands in it, nor on
// how much text follows.
TEST(JsonText, AnEscapeIsReadWhereverItStands) {
  const std::pair<const char*, const char*> parts[] = {
      {R"(\n)", "\n"},    {R"(\\)", "\\"},          {R"(\")", "\""}, {R"(\n\t)", "\n\t"},
      {R"(\u0041)", "A"}, {R"(\ud83d\ude00)", "😀"}, {"é漢", "é漢"},  {R"(\\\\\")", "\\\\\""}};
  for (const size_t behind : {0, 15, 16, 63, 64, 127, 128, 300}) {
    for (size_t before = 0; before < 140; ++before) {
      for (const auto& [written, read] : parts) {
        const std::string a(before, 'a'), b(behind, 'b');
        const Result<JsonValue> value = parse_json('"' + a + written + b + written + '"');
        ASSERT_TRUE(value) << before << ' ' << written << ' ' << behind;
        ASSERT_EQ(*value->if_string(), a + read + b + read) << before << ' ' << behind;
      }
      ASSERT_FALSE(
          parse_json('"' + std::string(before, 'a') + "\n" + std::string(behind, 'b') + '"'));
      ASSERT_FALSE(
          parse_json('"' + std::string(before, 'a') + "\\x" + std::string(behind, 'b') + '"'));
    }
  }
}

TEST(JsonText, BytesAreCountedAsTheyAreWritten) {
  for (const std::string_view text :
       {"0", "\"\"", "[]", "{}", R"([1,"ab",{"c":[],"d":{}}])", R"({"a":[[],[2]]})"}) {
    const JsonValue value = *parse_json(text);
    size_t left = text.size();
    EXPECT_TRUE(take_json_bytes(value, &left)) << text;
    EXPECT_EQ(left, 0u) << text;
    size_t too_few = text.size() - 1;
    EXPECT_FALSE(take_json_bytes(value, &too_few)) << text;
  }
}

TEST(JsonText, NestingIsLimited) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(compact(nested(127)), nested(127));
  EXPECT_NE(error(nested(128)).find("more than 127 levels"), std::string::npos);
}

TEST(JsonText, WhatIsNotJsonIsRefusedWithItsPlace) {
  EXPECT_EQ(error("{\n \"a\": nul }"), "expected a value at line 2 column 7");
  EXPECT_EQ(error("[1,]"), "expected a value at line 1 column 4");
  EXPECT_EQ(error("\"a\nb\""), "control character within a string at line 1 column 3");
  for (const char* text :
       {"", "01", "1.", "+1", "1e", "NaN", "'a'", "[1 2]", "{\"a\" 1}", "\"\\x\"", "\"\\u12\"",
        "1e400", "\"\xc0\xaf\"", "\xef\xbb\xbf{}", "[] 1"}) {
    EXPECT_NE(error(text).find(" at line "), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace fathom::codec
