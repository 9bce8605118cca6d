#include "fathom/open_engine.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "assembly/instance.h"
#include "device/cpu_features.h"
#include "fathom/codec.h"

namespace fathom {
namespace {

const std::string kDemo = FATHOM_SOURCE_DIR "/models/demo";

// The tokens of one request, run to its end.
std::vector<int32_t> run(Engine& engine, Request request) {
  std::vector<int32_t> ids;
  const Result<RequestId> id = engine.submit(std::move(request));
  EXPECT_TRUE(id.has_value()) << id.error().to_string();
  for (bool done = !id.has_value(); !done;) {
    for (const TokenEvent& event : engine.wait(std::chrono::milliseconds(1000))) {
      EXPECT_TRUE(event.error.ok()) << event.error.to_string();
      if (event.token >= 0) ids.push_back(event.token);
      done = done || event.finish != FinishReason::kNone;
    }
  }
  return ids;
}

TEST(OpenEngine, AnswersWhatTheCodecRendered) {
  const auto engine = open_engine({.model = kDemo});
  ASSERT_TRUE(engine.has_value()) << engine.error().to_string();
  const auto codec = Codec::open(kDemo + "/tokenizer.json");
  ASSERT_TRUE(codec.has_value()) << codec.error().to_string();
  const std::string body =
      R"({"messages":[{"role":"user","content":"4 * 70"}],"thinking":{"type":"disabled"}})";
  const auto rendered = (*codec)->render(ApiProtocol::kChatCompletions, body);
  ASSERT_TRUE(rendered.has_value()) << rendered.error().to_string();
  Request request;
  request.prompt = rendered->ids;
  request.params.temperature = 0;
  const std::vector<int32_t> ids = run(**engine, request);
  EXPECT_EQ((*codec)->decode(std::span(ids).first(ids.size() - 1)), "280");
  EXPECT_EQ((*engine)->stats().running, 0);
  (*engine)->drain();
  EXPECT_EQ((*engine)->submit(request).error().code(), StatusCode::kCancelled);
}

// What the config leaves open never changes an answer.
TEST(OpenEngine, LimitsDoNotChangeTheAnswer) {
  Request request;
  request.prompt = {0, 100, 200, 300};
  request.params.temperature = 0;
  request.params.max_tokens = 12;
  request.params.ignore_eos = true;
  std::vector<int32_t> expected;
  for (const Config& config :
       {Config{.model = kDemo}, Config{.model = kDemo, .threads = 1, .max_batch = 1},
        Config{.model = kDemo, .chunk_tokens = 1, .asynchronous = false},
        Config{.model = kDemo, .kv_memory_bytes = 1 << 20, .prefix_cache = PrefixCache::kOff}}) {
    const auto engine = open_engine(config);
    ASSERT_TRUE(engine.has_value()) << engine.error().to_string();
    const std::vector<int32_t> ids = run(**engine, request);
    EXPECT_EQ(ids.size(), 12u);
    if (expected.empty()) expected = ids;
    EXPECT_EQ(ids, expected);
  }
}

// Log-probabilities of the first tokens; they show roundings that the tokens may hide.
std::vector<float> logprobs(const Config& config) {
  std::vector<float> values;
  const auto engine = open_engine(config);
  EXPECT_TRUE(engine.has_value()) << engine.error().to_string();
  if (!engine) return values;
  Request request;
  request.prompt = {0, 100, 200, 300};
  request.params.temperature = 0;
  request.params.max_tokens = 4;
  request.params.ignore_eos = true;
  request.params.logprobs = 0;
  EXPECT_TRUE((*engine)->submit(std::move(request)).has_value());
  for (bool done = false; !done;) {
    for (const TokenEvent& event : (*engine)->wait(std::chrono::milliseconds(1000))) {
      EXPECT_TRUE(event.error.ok()) << event.error.to_string();
      if (event.token >= 0) values.push_back(event.logprob);
      done = done || event.finish != FinishReason::kNone;
    }
  }
  return values;
}

TEST(OpenEngine, NumericsReachTheKernels) {
  const Config reference{.model = kDemo, .device = "cpu", .numerics = "reference"};
  const Config int8{.model = kDemo, .device = "cpu", .numerics = "int8"};
  const std::vector<float> a = logprobs(reference), b = logprobs(int8);
  ASSERT_EQ(a.size(), 4u);
  ASSERT_EQ(b.size(), 4u);
  EXPECT_NE(a, b);
  EXPECT_NEAR(a[0], b[0], 0.5);
  // What is meant when nothing is said, with the kernels of this CPU and with plain ones.
  EXPECT_EQ(logprobs({.model = kDemo, .device = "cpu"}), best_isa() >= Isa::kAvx2 ? b : a);
  EXPECT_EQ(logprobs({.model = kDemo, .device = "cpu", .isa = "plain"}),
            logprobs({.model = kDemo, .device = "cpu", .isa = "plain", .numerics = "reference"}));
}

TEST(OpenEngine, TheDefaultOfNumericsDependsOnTheDeviceAndTheKernels) {
  using assembly::choose_numerics;
  using kernels::Numerics;
  EXPECT_EQ(*choose_numerics("", false, Isa::kAvx512), Numerics::kInt8);
  EXPECT_EQ(*choose_numerics("", false, Isa::kAmx), Numerics::kInt8);
  EXPECT_EQ(*choose_numerics("", false, Isa::kAvx2), Numerics::kInt8);
  EXPECT_EQ(*choose_numerics("", false, Isa::kPlain), Numerics::kReference);
  EXPECT_EQ(*choose_numerics("", false, Isa::kReference), Numerics::kReference);
  EXPECT_EQ(*choose_numerics("", true, Isa::kAvx512), Numerics::kReference);
  EXPECT_EQ(*choose_numerics("int8", false, Isa::kPlain), Numerics::kInt8);
  EXPECT_EQ(*choose_numerics("reference", true, Isa::kAvx512), Numerics::kReference);
  const auto on_gpu = choose_numerics("int8", true, Isa::kAvx512);
  ASSERT_FALSE(on_gpu.has_value());
  EXPECT_NE(on_gpu.error().message().find("a GPU has reference only"), std::string::npos);
  EXPECT_FALSE(choose_numerics("int4", false, Isa::kAvx2).has_value());
}

TEST(OpenEngine, RefusesWhatCannotBe) {
  const auto code = [](const Config& config) {
    const auto engine = open_engine(config);
    return engine ? StatusCode::kOk : engine.error().code();
  };
  EXPECT_EQ(code({.model = "/no/such"}), StatusCode::kNotFound);
  EXPECT_EQ(code({.model = ""}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.model = "org/name", .hub_cache = "/no/such"}), StatusCode::kNotFound);
  EXPECT_EQ(code({.model = kDemo, .threads = -1}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.model = kDemo, .isa = "mmx"}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.model = kDemo, .numerics = "int4"}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.model = kDemo, .kv_memory_bytes = -1}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.model = kDemo, .kv_memory_bytes = 10}), StatusCode::kResourceExhausted);
  EXPECT_EQ(code({.model = kDemo, .max_batch = 0}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.model = kDemo, .chunk_tokens = 0}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.model = kDemo, .max_queue = 0}), StatusCode::kInvalidArgument);
  // Limits that leave out a model's parts still answer.
  EXPECT_EQ(code({.model = kDemo, .threads = 1, .isa = "plain", .max_batch = 1}), StatusCode::kOk);
}

}  // namespace
}  // namespace fathom
