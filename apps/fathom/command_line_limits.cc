#include "command_line_limits.h"

#include <limits>
#include <string>
#include <utility>

#include "command_line_options.h"
#include "prompt.h"

namespace fathom::app {
namespace {

void add_ids(Command app, const std::string& name, std::vector<int32_t>* out,
             const std::string& text) {
  app.add(name, "IDS", text, [=](const std::string& value) {
    Result<std::vector<int32_t>> ids = parse_ids(value);
    if (!ids || ids->empty()) throw bad_value(name, value, "a list of token ids such as 1,2,3");
    *out = *std::move(ids);
  });
}

// "280:-5.5"
std::pair<int32_t, float> parse_bias(const std::string& value) {
  const size_t colon = value.find(':');
  if (colon != value.npos) {
    const auto id =
        parse_number<int32_t>(value.substr(0, colon), 0, std::numeric_limits<int32_t>::max());
    const auto bias = parse_number<float>(value.substr(colon + 1), -100, 100);
    if (id && bias) return {*id, *bias};
  }
  throw bad_value("--logit-bias", value, "ID:BIAS with a bias from -100 to 100, such as 280:-5");
}

}  // namespace

void add_latency_target(Command app, EngineOptions* out) {
  app.add("--step-latency-target-ms", "MS",
          "prompts take only as much of a step as leaves running answers this long between tokens",
          [out](const std::string& value) {
            const auto target = parse_number<double>(value, 0.01, 1e6);
            if (!target) {
              throw bad_value("--step-latency-target-ms", value, "a number from 0.01 to 1e6");
            }
            out->step_latency_target_ms = *target;
          });
}

void add_prefix_cache(Command app, EngineOptions* out) {
  app.add(
      "--prefix-cache", "MODE",
      "reuse what earlier prompts computed: on; replay (fewer rows to run again, other bits); off "
      "(default on)",
      [out](const std::string& value) {
        if (value == "on") {
          out->prefix_cache = PrefixCache::kOn;
        } else if (value == "replay") {
          out->prefix_cache = PrefixCache::kReplay;
        } else if (value == "off") {
          out->prefix_cache = PrefixCache::kOff;
        } else {
          throw bad_value("--prefix-cache", value, "on, replay or off");
        }
      });
}

void add_drafts(Command app, EngineOptions* out) {
  add_int<int32_t>(app, "--max-draft", &out->max_draft, 0, SamplingParams::kMostDrafts,
                   "tokens that the model's draft module guesses ahead in a step, at most; same "
                   "answers, sooner (default 5; 0: none)")
      .read_environment("DEEPINFER_USE_NEXTN_DECODE");
  app.add("--draft-verify", "MODE",
          "guesses that a step checks: confidence, as many as are worth it; fixed, all (default "
          "confidence)",
          [out](const std::string& value) {
            // The numbers are those of the variable.
            if (value == "confidence" || value == "1") {
              out->draft_verify = DraftVerify::kConfidence;
            } else if (value == "fixed" || value == "0") {
              out->draft_verify = DraftVerify::kFixed;
            } else {
              throw bad_value("--draft-verify", value, "confidence or fixed");
            }
          })
      .read_environment("DEEPINFER_ENABLE_MTP_VARLEN");
}

void add_limit_options(Command app, SamplingOptions* out) {
  constexpr int32_t kMany = 1 << 30;
  add_int<int32_t>(app, "--min-tokens", &out->min_tokens, 0, kMany,
                   "tokens before the end token or a stop id can be chosen");
  add_ids(app, "--stop-ids", &out->stop_ids, "token ids that end the answer");
  app.add_repeated("--bad-words", "TEXT", "never written; may be given several times",
                   [out](const std::string& value) { out->bad_words.push_back(value); });
  add_ids(app, "--allowed-ids", &out->allowed_ids, "the answer is made of these token ids only");
  app.add_repeated(
      "--logit-bias", "ID:BIAS", "added to the logit of a token; may be given several times",
      [out](const std::string& value) { out->logit_bias.push_back(parse_bias(value)); });
  add_ids(app, "--forced-ids", &out->forced_ids, "token ids that the answer begins with");
  add_int<int32_t>(
      app, "--prompt-logprobs", &out->prompt_logprobs, 0, 1 << 20,
      "log-probabilities of the prompt's tokens and the N likeliest (takes exact prefill)");
  add_int<int32_t>(app, "--priority", &out->priority, -kMany, kMany,
                   "lower is served first (default 0)");
  app.add("--timeout-s", "SECONDS", "an answer that takes longer ends with an error",
          [out](const std::string& value) {
            out->timeout_s = parse_number<double>(value, 1e-3, 1e9);
            if (!out->timeout_s)
              throw bad_value("--timeout-s", value, "a number from 0.001 to 1e9");
          });
  app.add("--cache-salt", "TEXT", "share cached prompts with requests of the same salt only",
          [out](const std::string& value) { out->cache_salt = value; });
}

}  // namespace fathom::app
