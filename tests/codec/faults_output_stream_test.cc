// Faults of the published package in counting and in token ids (docs/spec/recipe.md 7.3), and the
// kinds seen in the field (7.2) that concern outputs.
#include <gtest/gtest.h>

#include <array>

#include "codec/output/events_chat.h"
#include "codec/output_fixture.h"
#include "codec/tokenizer_fixture.h"

namespace fathom::codec {
namespace {

class OutputStreamFaults : public ::testing::Test {
 protected:
  // Pushes ids one by one.
  ParsedOutput run_ids(std::initializer_list<int32_t> ids) {
    OutputStream stream(options_, &v41(), CallIds::from_seed(0));
    for (const int32_t id : ids) {
      status_ = stream.push_tokens(std::array{id}, {}, &events_);
      if (!status_.ok()) return {};
    }
    stream.finish(FinishReason::kStop, &events_);
    ParsedOutput output;
    for (const OutputEvent& event : events_) output.add(event);
    return output;
  }

  OutputStream::Options options_ = output_options();
  std::vector<OutputEvent> events_;
  Status status_;
};

TEST_F(OutputStreamFaults, Utf8TailIsCountedAndShown) {
  const ParsedOutput unfinished = run_ids({67, 3574, 102});  // "a", two bytes of three
  EXPECT_EQ(unfinished.content, "a\uFFFD");
  EXPECT_EQ(unfinished.usage.completion_tokens, 3u);
}

TEST_F(OutputStreamFaults, Utf8TailOfARealReplacementCharacterIsShown) {
  const ParsedOutput real = run_ids({67, 2808});
  EXPECT_EQ(real.content, "a\uFFFD");
  EXPECT_EQ(real.usage.completion_tokens, 2u);
}

TEST_F(OutputStreamFaults, UsageUnknownIdIsAnError) {
  run_ids({67, 999999});
  EXPECT_EQ(status_.code(), StatusCode::kInternal);
  EXPECT_NE(status_.message().find("999999"), std::string::npos) << status_.message();
  run_ids({-1});
  EXPECT_EQ(status_.code(), StatusCode::kInternal);
}

TEST_F(OutputStreamFaults, EosLeakOfIdsIsDroppedAndCounted) {
  const ParsedOutput output = run_ids({0, 67, 1});
  EXPECT_EQ(output.content, "a");
  EXPECT_EQ(output.usage.completion_tokens, 3u);
}

TEST_F(OutputStreamFaults, LateReadyUsageIsReportedAtTheEnd) {
  OutputStream stream(options_, nullptr, CallIds::from_seed(0));
  stream.push_text("a", 1, &events_);
  stream.ready(12, 8, "fp", &events_);
  stream.ready(99, 99, "other", &events_);
  stream.finish(FinishReason::kStop, &events_);
  EXPECT_EQ(events_.front().usage.prompt_tokens, 0u);
  EXPECT_EQ(events_.back().usage.prompt_tokens, 12u);
  EXPECT_EQ(events_.back().usage.prompt_cache_hit_tokens, 8u);
  EXPECT_EQ(events_.back().fingerprint, "fp");
}

TEST_F(OutputStreamFaults, LogprobsUnrequestedAreNotShown) {
  const SampledLogprob logprob{-0.5, {{67, -0.5}}};
  for (const bool asked : {false, true}) {
    options_.logprobs = asked;
    events_.clear();
    OutputStream stream(options_, &v41(), CallIds::from_seed(0));
    ASSERT_TRUE(stream.push_tokens(std::array{67}, std::array{logprob}, &events_).ok());
    ASSERT_EQ(events_.size(), 2u);
    EXPECT_EQ(events_[1].logprobs.size(), asked ? 1u : 0u);
  }
}

// 7.2, by number.

TEST(OutputField, Kind5MarkerSplitOverChunksDoesNotLeak) {
  EXPECT_EQ(line_of(run_pieces({"a\n", "\n<｜", "DSML｜", " calls>\n<｜DSML｜ inv",
                                "oke name=\"f\">\n", "</｜DSML｜ invoke>\n</｜DSML｜ calls>"},
                               output_options())),
            "T[a] C[f {}] tool_calls");
}

TEST(OutputField, Kind6ClosingTagAndAngleBracketsStayOutOfArguments) {
  EXPECT_EQ(parsed(block(invoke("f", param("cmd", "ls 2>&1"))), output_options()),
            "C[f {\"cmd\": \"ls 2>&1\"}] tool_calls");
  // The closing tag of the parameter was forgotten.
  const std::string open = "<｜DSML｜ parameter name=\"cmd\" string=\"true\">ls\n";
  EXPECT_EQ(parsed(block(invoke("f", open)), output_options()),
            "C[f {\"cmd\": \"ls\\n\"}] tool_calls");
}

TEST(OutputField, Kind7LongStringsAreStreamed) {
  OutputStream::Options options = output_options();
  options.parser.arguments.hold_bytes = 128;
  OutputStream stream(options, nullptr, CallIds::from_seed(0));
  std::vector<OutputEvent> events;
  stream.push_text("<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n", 1, &events);
  stream.push_text("<｜DSML｜ parameter name=\"text\" string=\"true\">", 1, &events);
  size_t deltas = 0;
  for (int i = 0; i < 100; ++i) {
    events.clear();
    stream.push_text("ten bytes ", 1, &events);
    for (const OutputEvent& event : events) deltas += event.kind == OutputEvent::Kind::kArguments;
  }
  EXPECT_GT(deltas, 80u);
}

TEST(OutputField, Kind8And9CallWithoutThinkEndIsACallAndNoReasoning) {
  EXPECT_EQ(parsed("hm\n\n" + block(invoke("f", "")), thinking_options()),
            "R[hm] C[f {}] tool_calls");
}

TEST(OutputField, Kind11CorruptedBlockNamesAreRecognised) {
  for (const std::string_view name : {"toolcalls", "toolcall", "tool_calls", " function_calls"}) {
    const std::string text = "<｜DSML｜" + std::string(name) + ">\n" + invoke("f", "{\"a\": 1}\n") +
                             "</｜DSML｜" + std::string(name) + ">";
    EXPECT_EQ(parsed(text, output_options()), "C[f {\"a\": 1}] tool_calls") << name;
  }
}

TEST(OutputField, Kind12ArgumentsThatAreWrappedOnceMoreAreUnwrapped) {
  OutputStream::Options options = output_options();
  options.parser.tool_parameters = {{"f", {"a", "b"}}, {"g", {"input"}}};
  const auto called = [&](std::string_view name, const std::string& body) {
    return parsed(block(invoke(name, body)), options);
  };
  for (const size_t hold : {size_t{0}, SIZE_MAX}) {
    options.parser.arguments.hold_bytes = hold;
    const std::string inner = "{\"a\": 1, \"b\": \"x\"}";
    const std::string unwrapped = "C[f " + inner + "] tool_calls";
    EXPECT_EQ(called("f", param("arguments", inner, false)), unwrapped);
    EXPECT_EQ(called("f", param("input", inner)), unwrapped);
    EXPECT_EQ(called("f", "{\"arguments\": " + inner + "}\n"), unwrapped);
    // Not if it could be meant: a parameter of that name, other members, another parameter.
    EXPECT_EQ(called("g", param("input", "{\"input\": 1}", false)),
              "C[g {\"input\": {\"input\": 1}}] tool_calls");
    EXPECT_EQ(called("f", param("input", "{\"c\": 1}", false)),
              "C[f {\"input\": {\"c\": 1}}] tool_calls");
    EXPECT_EQ(called("f", param("input", inner, false) + param("a", "1")),
              "C[f {\"input\": " + inner + ", \"a\": \"1\"}] tool_calls");
    EXPECT_EQ(called("f", param("input", "text")), "C[f {\"input\": \"text\"}] tool_calls");
  }
}

TEST(OutputField, Kind14AParameterNamedArgumentsStaysAParameter) {
  EXPECT_EQ(parsed(block(invoke("f", param("arguments", "{\"a\": 1}", false))), output_options()),
            "C[f {\"arguments\": {\"a\": 1}}] tool_calls");
}

TEST(OutputField, Kind16And17BlockThatIsNeverClosedEndsInAnOrderlyWay) {
  const std::string head = "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n" + param("a", "v");
  EXPECT_EQ(parsed(head + "</tool_call>\n</function>", output_options()),
            "C[f {\"a\": \"v\"} cut] tool_calls");
  EXPECT_EQ(parsed(head + "</｜DSML｜ invoke>\nDone. ", output_options()),
            "T[Done. ] C[f {\"a\": \"v\"}] tool_calls");
}

TEST(OutputField, Kind18HeldTextIsFlushedAtTheEnd) {
  for (const std::string_view text : {"2 <", "x\n\n<｜DS", "a\n\n", "</thin", "ST"}) {
    OutputStream::Options options = output_options();
    options.parser.parsing.stop_sequences = {"STOP"};
    EXPECT_EQ(parsed(text, options), "T[" + std::string(text) + "] stop");
  }
}

TEST(OutputField, Kind19And26TagsOfV4AndV41AreTheSame) {
  const std::string v4 =
      "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">\n"
      "<｜DSML｜parameter name=\"a\" string=\"true\">x</｜DSML｜parameter>\n"
      "</｜DSML｜invoke>\n</｜DSML｜tool_calls>";
  EXPECT_EQ(parsed(v4, output_options()), "C[f {\"a\": \"x\"}] tool_calls");
}

TEST(OutputField, Kind21AnswersWithoutThinkingAreContent) {
  EXPECT_EQ(parsed("Hello.", output_options()), "T[Hello.] stop");
}

}  // namespace
}  // namespace fathom::codec
