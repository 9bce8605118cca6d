#include "codec/requests/schema_check.h"

#include <gtest/gtest.h>

#include "codec/json_text.h"
#include "codec/requests/regex_syntax.h"

namespace fathom::codec {
namespace {

std::string fault(std::string_view text) {
  const Result<JsonValue> schema = parse_json(text);
  EXPECT_TRUE(schema) << text;
  return schema ? schema_fault(*schema).value_or("") : "not JSON";
}

TEST(SchemaCheck, SchemasOfAllDraftsAreAccepted) {
  for (const char* schema :
       {"true", "{}", R"({"type":["string","null"]})",
        R"({"$schema":"http://json-schema.org/draft-04/schema#","exclusiveMinimum":true})",
        R"({"$schema":"https://json-schema.org/draft/2020-12/schema","prefixItems":[true]})",
        R"({"items":[{"type":"string"}],"$ref":"#/items/0"})",
        R"({"$defs":{"a~b/c":{"$anchor":"x"}},"anyOf":[{"$ref":"#/$defs/a~0b~1c"},{"$ref":"#x"}]})",
        R"({"properties":{"$ref":{"type":"string"},"pattern":{"type":"string"}}})",
        R"({"pattern":"^(?=a)\\1"})"}) {
    EXPECT_EQ(fault(schema), "") << schema;
  }
}

TEST(SchemaCheck, EachFaultIsNamedWithItsPlace) {
  EXPECT_EQ(fault("3"), "3 is not of types \"boolean\", \"object\"");
  EXPECT_EQ(fault(R"({"properties":{"a":{"type":"text"}}})"),
            "/properties/a/type: \"text\" is not a type of JSON");
  EXPECT_EQ(fault(R"({"allOf":[{"pattern":"("}]})"),
            "/allOf/0/pattern: \"(\" is not a \"regex\": a group is not closed at byte 1");
  EXPECT_EQ(fault(R"({"$ref":"#/$defs/q"})"), "/$ref: pointer '/$defs/q' does not exist");
  EXPECT_NE(fault(R"({"$ref":"http://x/"})").find("another document"), std::string::npos);
  for (const char* schema :
       {R"({"required":"a"})", R"({"enum":1})", R"({"minLength":-1})", R"({"minLength":1.5})",
        R"({"multipleOf":0})", R"({"anyOf":[]})", R"({"properties":[]})", R"({"uniqueItems":1})",
        R"({"$schema":"http://x/"})", R"({"maximum":"1"})", R"({"description":1})"}) {
    EXPECT_NE(fault(schema), "") << schema;
  }
}

TEST(SchemaCheck, ManyReferencesAreRefusedAndNotFollowedForEver) {
  std::string text = R"({"$defs":{)";
  for (int i = 0; i < 5000; ++i) text += "\"d" + std::to_string(i) + "\":true,";
  text += R"("x":{"anyOf":[)";
  for (int i = 0; i < 5000; ++i) text += "{\"$ref\":\"#/$defs/d" + std::to_string(i) + "\"},";
  text += "{\"$ref\":\"#\"}]}}}";
  EXPECT_NE(fault(text).find("too many references"), std::string::npos);
}

TEST(RegexSyntax, WellFormedPatternsPass) {
  for (const char* pattern : {"",
                              "a|b",
                              "^a{2,3}?$",
                              "[]a]+",
                              "[^]]",
                              "[a-z\\d]",
                              "\\p{L}\\x41\\u0041",
                              "a{,3}",
                              "{",
                              "(?:a)*",
                              "[a-z-9]",
                              "^[A-Za-z-' ]+$",
                              "[+--]",
                              "a{1,2000}",
                              "a{1, 2}",
                              "\\u{1F600}\\x{41}",
                              "(?<name>a)",
                              "(?P<name>a)",
                              "a{2}",
                              "漢+",
                              "x*+"}) {
    EXPECT_EQ(regex_fault(pattern), std::nullopt) << pattern;
  }
}

TEST(RegexSyntax, BrokenPatternsAreNamed) {
  for (const char* pattern :
       {"(",      ")",       "[a",        "a**",   "*",     "(*)",           "\\",
        "a{3,2}", "a{2001}", "[a-z-9-0]", "(?i)[", "(?=a",  "\\u{}",         "\\x{4",
        "\\u{g}", "a{2,1}",  "(?R)",      "[z-a]", "(?=a)", "(?<!a)",        "\\1",
        "\\p{L",  "\\x4",    "(?a)",      "|?",    "\xff",  "a{99999999999}"}) {
    EXPECT_NE(regex_fault(pattern), std::nullopt) << pattern;
  }
  EXPECT_NE(regex_fault(std::string(300, '(') + std::string(300, ')')), std::nullopt);
  EXPECT_NE(regex_fault(std::string(100000, 'a')), std::nullopt);
}

// A schema that nobody is held to may have them: tools that are not strict.
TEST(RegexSyntax, WhatCannotBeHeldToIsStillAPattern) {
  for (const char* pattern : {"(?i)abc", "(?i:a)b", "(?s-m).", "^(?=.*[A-Z]).{8,}$", "(a)\\1",
                              "^.{1,5000}$", "(?i)a(?=b)\\2"}) {
    const std::optional<std::string> what = regex_fault(pattern);
    ASSERT_TRUE(what.has_value()) << pattern;
    EXPECT_NE(what->find("not supported"), std::string::npos) << pattern << ": " << *what;
    const std::string schema = R"({"type":"string","pattern":)" +
                               write_json(JsonValue(std::string(pattern)), JsonStyle::kCompact) +
                               "}";
    EXPECT_EQ(fault(schema), "") << pattern;
  }
}

}  // namespace
}  // namespace fathom::codec
