// The tokenizers of the tests, loaded once a process.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "codec/tokenizer.h"
#include "codec/tokenizer_bytes.h"

namespace fathom::codec {

inline const Tokenizer& load_or_die(const std::string& file) {
  Result<std::unique_ptr<Tokenizer>> loaded = Tokenizer::load(file);
  if (!loaded) {
    ADD_FAILURE() << loaded.error().to_string();
    std::abort();
  }
  return *std::move(loaded).value().release();  // lives as long as the process
}

inline const Tokenizer& v4() {
  static const Tokenizer& tokenizer =
      load_or_die(FATHOM_BINARY_DIR "/tokenizer_files/tokenizer_v4.json");
  return tokenizer;
}

inline const Tokenizer& v41() {
  static const Tokenizer& tokenizer =
      load_or_die(FATHOM_BINARY_DIR "/tokenizer_files/tokenizer_v41.json");
  return tokenizer;
}

inline const Tokenizer& demo() {
  static const Tokenizer& tokenizer = load_or_die(FATHOM_SOURCE_DIR "/models/demo/tokenizer.json");
  return tokenizer;
}

// A tokenizer.json without merges: token i is byte i, and text is one piece.  Tests add to it.
inline boost::json::object byte_document() {
  boost::json::object vocab;
  for (int byte = 0; byte < 256; ++byte) {
    const char text = static_cast<char>(byte);
    vocab[spell_bytes({&text, 1})] = byte;
  }
  const boost::json::object byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  return {
      {"version", "1.0"},
      {"added_tokens", boost::json::array()},
      {"normalizer", nullptr},
      {"pre_tokenizer", byte_level},
      {"decoder", byte_level},
      {"model", {{"type", "BPE"}, {"vocab", std::move(vocab)}, {"merges", boost::json::array()}}}};
}

// Adds the merge of two base tokens as the last; its result gets the next id.
inline void add_merge(boost::json::object* document, const std::string& left,
                      const std::string& right, bool as_pair = false) {
  boost::json::object& model = document->at("model").as_object();
  boost::json::object& vocab = model.at("vocab").as_object();
  if (!vocab.contains(left + right)) vocab[left + right] = vocab.size();
  boost::json::value merge;
  if (as_pair) {
    merge = boost::json::array{left, right};
  } else {
    merge = left + " " + right;
  }
  model.at("merges").as_array().push_back(std::move(merge));
}

inline Result<std::unique_ptr<Tokenizer>> parse_document(const boost::json::object& document) {
  return Tokenizer::parse(boost::json::serialize(document), "test.json");
}

// The message of the error that the document gives, or "" if it gives none.
inline std::string error_of(const boost::json::object& document) {
  const auto parsed = parse_document(document);
  return parsed ? "" : parsed.error().message();
}

// "ab|c": the text of each token of `text`.
inline std::string pieces_of(const boost::json::object& document, std::string_view text,
                             bool recognize_added = true) {
  const auto tokenizer = parse_document(document);
  if (!tokenizer) return "error: " + tokenizer.error().message();
  std::string joined;
  for (const int32_t id : (*tokenizer)->encode(text, recognize_added)) {
    if (!joined.empty()) joined += '|';
    const std::string_view bytes = (*tokenizer)->token_bytes(id);
    joined += (*tokenizer)->is_added(id) ? "<" + std::string(bytes) + ">" : std::string(bytes);
  }
  return joined;
}

}  // namespace fathom::codec
