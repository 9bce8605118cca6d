// Files that are damaged, hostile, or ask for what we do not interpret: one clear error each.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "codec/tokenizer_fixture.h"

namespace fathom::codec {
namespace {

namespace json = boost::json;

json::object& model_of(json::object* document) { return document->at("model").as_object(); }
json::object& vocab_of(json::object* document) {
  return model_of(document).at("vocab").as_object();
}

json::object with_stages(json::array stages) {
  json::object document = byte_document();
  document["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", std::move(stages)}};
  return document;
}

json::object split_stage(json::object pattern, const char* behavior = "Isolated") {
  return {{"type", "Split"},
          {"pattern", std::move(pattern)},
          {"behavior", behavior},
          {"invert", false}};
}

const json::value kByteLevel = {
    {"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};

// The document's one error must name the file, the place and the matter.
void expect_error(const json::object& document, std::string_view place, std::string_view matter) {
  const std::string error = error_of(document);
  EXPECT_TRUE(error.starts_with("test.json: " + std::string(place) + ": ")) << error;
  EXPECT_NE(error.find(matter), std::string::npos) << error;
}

TEST(TokenizerFile, TheSmallestDocumentLoads) { EXPECT_EQ(error_of(byte_document()), ""); }

TEST(TokenizerFile, MissingFilesAndFoldersAreNamed) {
  const auto missing = Tokenizer::load("/nonexistent/tokenizer.json");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), StatusCode::kNotFound);
  EXPECT_NE(missing.error().message().find("/nonexistent/tokenizer.json"), std::string::npos);
  const auto folder = Tokenizer::load(FATHOM_SOURCE_DIR);
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().message().find("not a readable file"), std::string::npos);
}

TEST(TokenizerFile, EveryTruncationIsAnError) {
  const std::string whole = json::serialize(byte_document());
  for (size_t size = 0; size < whole.size(); size += 7) {
    const auto parsed = Tokenizer::parse(whole.substr(0, size), "cut.json");
    ASSERT_FALSE(parsed) << size;
    EXPECT_EQ(parsed.error().code(), StatusCode::kDataLoss);
    EXPECT_TRUE(parsed.error().message().starts_with("cut.json: not valid JSON"))
        << parsed.error().message();
  }
}

TEST(TokenizerFile, AnyDamagedByteIsAnErrorOrAnotherTokenizerButNeverACrash) {
  json::object document = byte_document();
  add_merge(&document, "a", "b");
  document["added_tokens"] = json::array{{{"id", 300}, {"content", "<s>"}, {"special", true}}};
  const std::string whole = json::serialize(document);
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const char byte : {'\0', '"', '9', '{', '\xff'}) {
      std::string damaged = whole;
      damaged[at] = byte;
      const auto parsed = Tokenizer::parse(damaged, "x");
      if (parsed) (*parsed)->encode("ab <s> \xff", true);
    }
  }
}

TEST(TokenizerFile, ValuesOfTheWrongTypeAreNamed) {
  const std::pair<const char*, const char*> members[] = {
      {"model", "an object"}, {"pre_tokenizer", "an object"}, {"added_tokens", "an array"}};
  for (const auto& [name, expected] : members) {
    json::object document = byte_document();
    document[name] = 7;
    expect_error(document, name, std::string("expected ") + expected);
  }
  json::object document = byte_document();
  model_of(&document)["vocab"] = json::array{};
  expect_error(document, "model.vocab", "expected an object, found array");
  document = byte_document();
  model_of(&document)["merges"] = "a b";
  expect_error(document, "model.merges", "expected an array");
  document = byte_document();
  model_of(&document).erase("merges");
  expect_error(document, "model.merges", "missing");
  EXPECT_NE(Tokenizer::parse("[1]", "x").error().message().find("expected an object"),
            std::string::npos);
}

TEST(TokenizerFile, NestingIsBounded) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  const auto parsed = Tokenizer::parse("{\"model\":" + deep + "}", "deep.json");
  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().message().find("too deep"), std::string::npos);
}

TEST(TokenizerFile, IdsMustBeDifferentIntegersInRange) {
  for (const json::value& id : {json::value(-1), json::value(1.5), json::value("1"),
                                json::value(4'000'000'000), json::value(nullptr)}) {
    json::object document = byte_document();
    vocab_of(&document)["ab"] = id;
    expect_error(document, "model.vocab", "the id of \"ab\"");
  }
  json::object document = byte_document();
  vocab_of(&document)["ab"] = 5;
  expect_error(document, "model.vocab", "id 5 is given twice");
}

TEST(TokenizerFile, MergesMustBePairsOfKnownTokens) {
  const std::pair<json::value, const char*> cases[] = {
      {"ab", "expected"},
      {"a b c", "expected"},
      {json::array{"a"}, "expected"},
      {json::array{"a", 1}, "expected"},
      {3, "expected"},
      {"a zz", "\"zz\" is not in model.vocab"},
      {"zz a", "\"zz\" is not in model.vocab"},
      {"a c", "\"ac\" is not in model.vocab"},
  };
  for (const auto& [merge, matter] : cases) {
    json::object document = byte_document();
    add_merge(&document, "a", "b");
    model_of(&document).at("merges").as_array().push_back(merge);
    expect_error(document, "model.merges[1]", matter);
  }
}

TEST(TokenizerFile, EveryByteOfUtf8NeedsAToken) {
  json::object document = byte_document();
  vocab_of(&document).erase("Ġ");
  expect_error(document, "model.vocab", "no token for the byte 32");
}

TEST(TokenizerFile, OptionsOfTheModelThatWeDoNotInterpretAreRefused) {
  const std::pair<const char*, json::value> options[] = {
      {"dropout", 0.1},
      {"unk_token", "<unk>"},
      {"continuing_subword_prefix", "##"},
      {"end_of_word_suffix", "_"},
      {"byte_fallback", true},
  };
  for (const auto& [name, value] : options) {
    json::object document = byte_document();
    model_of(&document)[name] = value;
    expect_error(document, std::string("model.") + name, "not supported");
    model_of(&document)[name] = nullptr;
    EXPECT_EQ(error_of(document), "");
  }
  json::object document = byte_document();
  model_of(&document)["type"] = "Unigram";
  expect_error(document, "model", "Unigram");
}

TEST(TokenizerFile, OtherNormalizersDecodersAndProcessorsAreRefused) {
  const std::pair<const char*, json::value> parts[] = {
      {"normalizer", {{"type", "NFC"}}},    {"post_processor", {{"type", "TemplateProcessing"}}},
      {"decoder", {{"type", "WordPiece"}}}, {"decoder", nullptr},
      {"truncation", {{"max_length", 5}}},  {"padding", {{"strategy", "BatchLongest"}}},
  };
  for (const auto& [name, value] : parts) {
    json::object document = byte_document();
    document[name] = value;
    expect_error(document, name, "not supported");
  }
  json::object document = byte_document();
  document["normalizer"] = {{"type", "Sequence"}, {"normalizers", json::array{{{"type", "NFC"}}}}};
  expect_error(document, "normalizer.normalizers", "not supported");
}

TEST(TokenizerFile, PreTokenizersThatWeDoNotInterpretAreRefused) {
  const std::string list = "pre_tokenizer.pretokenizers";
  expect_error(with_stages({{{"type", "Whitespace"}}, kByteLevel}), list + "[0]", "\"Whitespace\"");
  expect_error(with_stages({kByteLevel, kByteLevel}), list + "[1]", "after ByteLevel");
  expect_error(with_stages({{{"type", "Digits"}}}), "pre_tokenizer", "does not end in ByteLevel");
  expect_error(with_stages({split_stage({{"Regex", "a"}}, "Sideways"), kByteLevel}),
               list + "[0].behavior", "Sideways");
  expect_error(with_stages({split_stage({{"Regex", "a(?<=b)"}}), kByteLevel}),
               list + "[0].pattern.Regex", "at byte 2");
  expect_error(with_stages({split_stage({{"String", ""}}), kByteLevel}),
               list + "[0].pattern.String", "empty");
  expect_error(with_stages({split_stage(json::object()), kByteLevel}), list + "[0].pattern.Regex",
               "missing");
  json::object document = byte_document();
  document["pre_tokenizer"] = nullptr;
  expect_error(document, "pre_tokenizer", "without a pre-tokenizer");
  expect_error(with_stages(json::array(100, {{"type", "Digits"}})), list + "[32]", "stages");
}

TEST(TokenizerFile, AddedTokensMustFitTheVocabularyAndEachOther) {
  const auto added = [](json::array tokens) {
    json::object document = byte_document();
    document["added_tokens"] = std::move(tokens);
    return document;
  };
  const auto token = [](json::value id, json::value content) {
    return json::object{{"id", std::move(id)}, {"content", std::move(content)}};
  };
  EXPECT_EQ(error_of(added({token(97, "a")})), "");  // the same token once more
  expect_error(added({token(5, "<s>")}), "added_tokens[0]", "contradict");
  expect_error(added({token(300, "a")}), "added_tokens[0]", "contradict");
  expect_error(added({token(300, "x1"), token(300, "x2")}), "added_tokens[1]", "earlier");
  expect_error(added({token(300, "x1"), token(301, "x1")}), "added_tokens[1]", "earlier");
  expect_error(added({token(300, "")}), "added_tokens[0].content", "empty");
  expect_error(added({token(300, 3)}), "added_tokens[0].content", "expected a string");
  expect_error(added({token(300, json::string(5000, 'x'))}), "added_tokens[0].content", "bytes");
  expect_error(added({token(1e12, "x")}), "added_tokens[0].id", "expected an integer");
  expect_error(added({{{"id", 300}, {"content", "x"}, {"special", "yes"}}}),
               "added_tokens[0].special", "true or false");
}

}  // namespace
}  // namespace fathom::codec
