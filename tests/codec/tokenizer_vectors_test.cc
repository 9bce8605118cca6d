// The recorded vectors of the released tokenizers, V4 and V4.1.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>

#include "codec/tokenizer_fixture.h"

namespace fathom::codec {
namespace {

namespace json = boost::json;

std::vector<json::object> read_vectors(std::string_view kind) {
  std::ifstream stream(FATHOM_SOURCE_DIR "/tests/data/tokenizer/vectors.jsonl");
  std::vector<json::object> vectors;
  for (std::string line; std::getline(stream, line);) {
    json::object vector = json::parse(line).as_object();
    if (std::string_view(vector.at("kind").as_string()) == kind) vectors.push_back(vector);
  }
  return vectors;
}

std::string text_of(const json::value& value) {
  return std::string(value.as_string().data(), value.as_string().size());
}

std::vector<int32_t> ids_of(const json::value& value) {
  return json::value_to<std::vector<int32_t>>(value);
}

// The member `name`, or the one that it equals when it is absent.
const json::value& either(const json::object& vector, const char* name, const char* otherwise) {
  return vector.contains(name) ? vector.at(name) : vector.at(otherwise);
}

TEST(TokenizerVectors, EncodeGivesTheRecordedIds) {
  const auto vectors = read_vectors("encode");
  ASSERT_GT(vectors.size(), 300u);
  for (const auto& vector : vectors) {
    const std::string text = text_of(vector.at("text"));
    SCOPED_TRACE(text.substr(0, 200));
    EXPECT_EQ(v41().encode(text, true), ids_of(vector.at("ids")));
    EXPECT_EQ(v4().encode(text, true), ids_of(either(vector, "ids_v4", "ids")));
    EXPECT_EQ(v41().encode(text, false), ids_of(either(vector, "ids_plain", "ids")));
  }
}

TEST(TokenizerVectors, TextComesBackFromItsIds) {
  for (const auto& vector : read_vectors("encode")) {
    const std::string text = text_of(vector.at("text"));
    EXPECT_EQ(v41().decode(ids_of(vector.at("ids")), false), text);
    EXPECT_EQ(v4().decode(v4().encode(text, false), false), text);
  }
}

TEST(TokenizerVectors, BytesThatAreNotUtf8CountAsReplacementCharacters) {
  const auto vectors = read_vectors("encode_bytes");
  ASSERT_FALSE(vectors.empty());
  for (const auto& vector : vectors) {
    const std::string hex = text_of(vector.at("bytes"));
    std::string bytes;
    for (size_t i = 0; i < hex.size(); i += 2) {
      bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
    SCOPED_TRACE(hex);
    EXPECT_EQ(v41().encode(bytes, true), ids_of(vector.at("ids")));
    EXPECT_EQ(v41().encode(text_of(vector.at("text")), true), ids_of(vector.at("ids")));
    EXPECT_EQ(v41().decode(ids_of(vector.at("ids")), false), text_of(vector.at("text")));
  }
}

TEST(TokenizerVectors, DecodeGivesTheRecordedTexts) {
  const auto vectors = read_vectors("decode");
  ASSERT_FALSE(vectors.empty());
  for (const auto& vector : vectors) {
    const std::vector<int32_t> ids = ids_of(vector.at("ids"));
    SCOPED_TRACE(json::serialize(vector.at("ids")));
    EXPECT_EQ(v41().decode(ids, false), text_of(vector.at("text")));
    EXPECT_EQ(v41().decode(ids, true), text_of(either(vector, "text_skip", "text")));
  }
}

TEST(TokenizerVectors, TheReleasedFilesHaveTheirKnownTokens) {
  EXPECT_EQ(v41().vocab_size(), 129280);
  EXPECT_EQ(v41().find("<｜System｜>"), 128799);
  EXPECT_FALSE(v41().is_special(128799));
  EXPECT_TRUE(v41().is_added(128799));
  EXPECT_EQ(v4().find("<｜System｜>"), std::nullopt);
  EXPECT_EQ(v41().find("<｜image｜>"), 129264);
  EXPECT_TRUE(v41().is_special(129264));
  EXPECT_EQ(v41().find("<｜begin▁of▁sentence｜>"), 0);
  const auto the = v41().find("Ġthe");
  ASSERT_TRUE(the.has_value());
  EXPECT_EQ(v41().token_bytes(*the), " the");
  EXPECT_EQ(v41().token_text(*the), "Ġthe");
  EXPECT_FALSE(v41().is_added(*the));
  EXPECT_EQ(v41().token_bytes(-1), "");
  EXPECT_EQ(v41().token_bytes(129280), "");
  EXPECT_FALSE(v41().is_special(129280));
}

}  // namespace
}  // namespace fathom::codec
