// What the user asked for on the command line, one plain struct a command.
//
// Values are checked for range when they are parsed; what needs a model (token ids, context) is
// checked later.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codec/think.h"
#include "fathom/config.h"
#include "fathom/constraint.h"
#include "fathom/request.h"

namespace fathom::app {

// --model and what follows the engine's options; `model` "" is the demo model.
using EngineOptions = Config;

// Sampling as given; what is not given comes from the request's file, then from the checkpoint's
// generation_config.json, then from SamplingParams.
struct SamplingOptions {
  std::optional<int32_t> max_tokens;
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<int32_t> top_k;
  std::optional<float> min_p;
  std::optional<float> repetition_penalty;
  std::optional<float> presence_penalty;
  std::optional<float> frequency_penalty;
  std::vector<std::pair<int32_t, float>> logit_bias;
  std::optional<uint64_t> seed;
  std::optional<int32_t> n;
  std::optional<int32_t> logprobs;
  std::vector<std::string> stop;
  std::optional<bool> ignore_eos;
  std::optional<int32_t> min_tokens;
  std::optional<int32_t> max_draft;                // not above the engine's
  std::vector<std::string> bad_words;              // as text
  std::vector<std::vector<int32_t>> bad_word_ids;  // as ids
  std::vector<int32_t> allowed_ids;
  std::vector<int32_t> stop_ids;
  std::vector<int32_t> forced_ids;
  std::optional<int32_t> prompt_logprobs;
  std::optional<int32_t> priority;
  std::optional<double> timeout_s;
  std::optional<std::string> cache_salt;
  std::optional<codec::Think> think;
  std::optional<int32_t> effort_level;  // 1-100, with think
  std::optional<std::string> system;
  std::optional<std::string> tools_file;  // JSON, as the field of Chat Completions
  std::optional<bool> json_mode;          // the answer is a JSON object, and the prompt says so
  std::optional<Constraint> constraint;   // what the answer must be; wins over the conversation's
};

// Images of a request.
struct ImageOptions {
  bool allow_urls = false;                 // data URLs always are
  std::vector<std::string> trusted_hosts;  // "HOST" or "HOST:PORT": may be of a private network
};

struct GenerateOptions {
  EngineOptions engine;
  ImageOptions images;
  SamplingOptions sampling;
  std::optional<std::string> prompt;  // the text itself; "-": standard input
  std::optional<std::string> prompt_file;
  std::optional<std::string> messages_file;
  std::optional<std::string> prompt_ids;  // "1,2,3"
  std::optional<std::string> jsonl_in;    // "-": standard input
  std::optional<std::string> jsonl_out;   // "-": standard output
  bool raw = false;
  bool json = false;
  bool quiet = false;
};

struct ChatOptions {
  EngineOptions engine;
  SamplingOptions sampling;
  bool quiet = false;
};

struct InfoOptions {
  EngineOptions engine;  // with a GPU: also what the engine takes of its memory
  bool json = false;
};

struct TokenizeOptions {
  std::string model;
  std::optional<std::string> tokenizer_file;
  std::vector<std::string> words;  // the text, or the ids with `decode`
  std::optional<std::string> text_file;
  bool decode = false;
  bool special = false;
  bool json = false;
};

struct RenderCommandOptions {
  std::string file = "-";                     // "-": standard input
  std::string protocol = "chat_completions";  // or "responses", "messages"
  bool v4 = false;
  bool ids = false;
  bool json = false;
  bool load_images = false;
  ImageOptions images;
  std::string model;
  std::optional<std::string> tokenizer_file;
};

struct CalibrateOptions {
  EngineOptions engine;
  std::string text_file;
  std::string out_file;  // "": beside the model
  int32_t prompts = 64;
  bool json = false;
};

struct EvalOptions {
  EngineOptions engine;
  std::optional<std::string> set_file;
  std::optional<std::string> perplexity_file;
  std::optional<std::string> answers_file;
  std::string category;  // "": all
  int64_t limit = 0;     // 0: all
  bool json = false;
};

}  // namespace fathom::app
