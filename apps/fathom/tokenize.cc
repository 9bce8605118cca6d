// fathom tokenize: text to ids and back.
#include <cstdio>

#include "commands.h"
#include "engine.h"
#include "failure.h"
#include "json_writer.h"
#include "output.h"
#include "prompt.h"

namespace fathom::app {
namespace {

Result<std::string> input_text(const TokenizeOptions& options) {
  if (!options.text_file && options.words.empty()) return read_text("-");
  if (options.text_file && !options.words.empty()) {
    return wrong_use("give the text either as words or by --file");
  }
  if (options.text_file) return read_text(*options.text_file);
  std::string text;
  for (const std::string& word : options.words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string decode(const codec::Tokenizer& tokenizer, const std::vector<int32_t>& ids,
                   const TokenizeOptions& options) {
  const std::string text = tokenizer.decode(ids, /*skip_special=*/!options.special);
  if (!options.json) return text + "\n";
  JsonWriter json;
  json.begin_object().member("text", text).end_object();
  return json.text() + "\n";
}

std::string encode(const codec::Tokenizer& tokenizer, const std::string& text,
                   const TokenizeOptions& options) {
  const std::vector<int32_t> ids = tokenizer.encode(text, options.special);
  JsonWriter json;
  json.begin_object().key("ids").begin_array();
  for (const int32_t id : ids) json.value(id);
  json.end_array().key("pieces").begin_array();
  for (const int32_t id : ids) json.value(tokenizer.token_bytes(id));
  json.end_array().end_object();
  if (options.json) return json.text() + "\n";

  std::string lines;
  for (const int32_t id : ids) {
    JsonWriter piece;
    piece.value(tokenizer.token_bytes(id));
    lines += std::to_string(id) + "\t" + piece.text() + "\n";
  }
  return lines;
}

Status check_ids(const codec::Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  for (const int32_t id : ids) {
    if (id >= tokenizer.vocab_size()) {
      return wrong_use("token id " + std::to_string(id) +
                       " is not in the vocabulary, which ends at " +
                       std::to_string(tokenizer.vocab_size() - 1));
    }
  }
  return Status();
}

Status tokenize(const TokenizeOptions& options) {
  std::unique_ptr<codec::Tokenizer> tokenizer;
  if (options.tokenizer_file) {
    FATHOM_ASSIGN(tokenizer, codec::Tokenizer::load(*options.tokenizer_file));
  } else {
    FATHOM_ASSIGN(const std::filesystem::path dir, find_model(options.model));
    FATHOM_ASSIGN(tokenizer, load_tokenizer(dir));
  }
  FATHOM_ASSIGN(const std::string text, input_text(options));
  FATHOM_TRY(check_utf8(text, "the text"));
  if (!options.decode) return print(encode(*tokenizer, text, options));
  FATHOM_ASSIGN(const std::vector<int32_t> ids, parse_ids(text));
  FATHOM_TRY(check_ids(*tokenizer, ids));
  return print(decode(*tokenizer, ids, options));
}

}  // namespace

int run_tokenize(const TokenizeOptions& options) {
  const Status status = tokenize(options);
  return is_closed_output(status) ? kExitDone : finish(status);
}

}  // namespace fathom::app
