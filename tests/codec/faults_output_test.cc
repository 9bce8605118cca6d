// Faults of the published package in reading outputs (docs/spec/recipe.md 7.3): each test is named
// after its kind and holds the right value.
#include <gtest/gtest.h>

#include "codec/output_fixture.h"

namespace fathom::codec {
namespace {

constexpr FinishReason kLength = FinishReason::kLength;

TEST(OutputFaults, PrefixNewlineIsKeptWhenTheAnswerIsContinued) {
  OutputStream::Options options = output_options();
  options.parser.parsing.thinking_initial_stage = ParsingOptions::Stage::kContentContinuation;
  EXPECT_EQ(parsed("\n\nabc", options), "T[\n\nabc] stop");
}

TEST(OutputFaults, ParamNameSpaceNameEndsAtTheQuote) {
  EXPECT_EQ(parsed(block(invoke("f", param("shipping address", "x"))), output_options()),
            "C[f {\"shipping address\": \"x\"}] tool_calls");
  EXPECT_EQ(parsed(block(invoke("f", param(" string= mode ", "1", false))), output_options()),
            "C[f {\" string= mode \": 1}] tool_calls");
}

// Not marked in the vectors: the package passes a tab or backslash in a name on as it is, which is
// no JSON.
TEST(OutputFaults, ParamNameEscapedAsAJsonString) {
  EXPECT_EQ(parsed(block(invoke("f", param("a\\b\t", "x"))), output_options()),
            "C[f {\"a\\\\b\\t\": \"x\"}] tool_calls");
}

TEST(OutputFaults, MissingStringAttrMeansAString) {
  const std::string end = "</｜DSML｜ parameter>\n";
  EXPECT_EQ(parsed(block(invoke("f", "<｜DSML｜ parameter name=\"a\">v" + end)), output_options()),
            "C[f {\"a\": \"v\"}] tool_calls");
  EXPECT_EQ(parsed(block(invoke("f", "<｜DSML｜ parameter name=\"a\" string=\"1\">1" + end)),
                   output_options()),
            "C[f {\"a\": \"1\"}] tool_calls");
}

TEST(OutputFaults, TruncatedCallIsClosedAndMarked) {
  const std::string head = "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n";
  const std::string begin = head + "<｜DSML｜ parameter name=\"a\" string=\"true\">";
  const std::string json = head + "<｜DSML｜ parameter name=\"a\" string=\"false\">";
  const OutputStream::Options options = output_options();
  EXPECT_EQ(parsed(head, options, kLength), "C[f {} cut] length");
  EXPECT_EQ(parsed(head + "<｜DSML｜ parameter name=\"ci", options, kLength), "C[f {} cut] length");
  EXPECT_EQ(parsed(head + "<｜DSML｜ parameter name=\"a\" s", options, kLength),
            "C[f {} cut] length");
  EXPECT_EQ(parsed(begin + "Par", options, kLength), "C[f {\"a\": \"Par\"} cut] length");
  EXPECT_EQ(parsed(begin + "Par</｜DSML｜ para", options, kLength),
            "C[f {\"a\": \"Par\"} cut] length");
  EXPECT_EQ(parsed(head + param("a", "1") + "<", options, kLength),
            "C[f {\"a\": \"1\"} cut] length");
  EXPECT_EQ(parsed(json + "[1, {\"b\": \"x", options, kLength),
            "C[f {\"a\": [1, {\"b\": \"x\"}]} cut] length");
  EXPECT_EQ(parsed(json + "{\"b\":", options, kLength), "C[f {\"a\": {\"b\":null}} cut] length");
  EXPECT_EQ(parsed(json + "{\"b\": 1, \"c", options, kLength),
            "C[f {\"a\": {\"b\": 1, \"c\":null}} cut] length");
  EXPECT_EQ(parsed(json + "[true, fal", options, kLength), "C[f {\"a\": [true]} cut] length");
  EXPECT_EQ(parsed(json + "[\"a\\u00", options, kLength), "C[f {\"a\": [\"a\"]} cut] length");
  EXPECT_EQ(parsed(json + "tru", options, kLength), "C[f {\"a\": \"tru\"} cut] length");
  EXPECT_EQ(parsed(head + "{\"a\": [1, 2", options, kLength), "C[f {\"a\": [1, 2]} cut] length");
}

TEST(OutputFaults, InvalidJsonValueBecomesAString) {
  const auto value = [](std::string_view text) {
    return parsed(block(invoke("f", param("a", text, false))), output_options());
  };
  EXPECT_EQ(value("{oops"), "C[f {\"a\": \"{oops\"}] tool_calls");
  EXPECT_EQ(value(""), "C[f {\"a\": \"\"}] tool_calls");
  EXPECT_EQ(value("True"), "C[f {\"a\": \"True\"}] tool_calls");
  EXPECT_EQ(value("{'a': 1}"), "C[f {\"a\": \"{'a': 1}\"}] tool_calls");
  EXPECT_EQ(value("[1,\n 2] "), "C[f {\"a\": [1,\n 2] }] tool_calls");
  OutputStream::Options options = output_options();
  options.parser.arguments.python_words = true;
  EXPECT_EQ(
      parsed(block(invoke("f", param("a", "True", false) + param("b", "None", false))), options),
      "C[f {\"a\": true, \"b\": null}] tool_calls");
}

TEST(OutputFaults, JsonBodyIsTakenAsTheArguments) {
  EXPECT_EQ(parsed(block(invoke("f", "{\"a\": 1}\n")), output_options()),
            "C[f {\"a\": 1}] tool_calls");
  EXPECT_EQ(parsed(block(invoke("f", "```json\n{\"a\": \"<b>\"}\n```\n")), output_options()),
            "C[f {\"a\": \"<b>\"}] tool_calls");
  EXPECT_EQ(parsed(block(invoke("f", "[1]\n")), output_options()), "C[f {}] tool_calls");
}

TEST(OutputFaults, ProseMarkerIsGivenBack) {
  const OutputStream::Options options = output_options();
  const std::string quoted = "Write `<｜DSML｜ calls>` to open it, then text.";
  EXPECT_EQ(parsed(quoted, options), "T[" + quoted + "] stop");
  EXPECT_EQ(parsed("x\n\n<｜DSML｜ calls>\n\nis it", options),
            "T[x\n\n<｜DSML｜ calls>\n\nis it] stop");
  EXPECT_EQ(parsed("2 <", options), "T[2 <] stop");
  // A call that follows such a text is still found.
  EXPECT_EQ(parsed("<｜DSML｜ calls> opens.\n" + block(invoke("f", "")), options),
            "T[<｜DSML｜ calls> opens.] C[f {}] tool_calls");
}

TEST(OutputFaults, JsonModeTextLostIsShownInstead) {
  EXPECT_EQ(parsed("42", json_options()), "T[42] stop");
  EXPECT_EQ(parsed("\"x\"", json_options()), "T[\"x\"] stop");
  EXPECT_EQ(parsed("no json here", json_options()), "T[no json here] stop");
  EXPECT_EQ(parsed("I look.\n\n" + block(invoke("f", "")), json_options()),
            "T[I look.] C[f {}] tool_calls");
}

TEST(OutputFaults, JsonModeSpaceIsNotAdded) {
  EXPECT_EQ(parsed("Here {\"a\":1} and more", json_options()), "T[{\"a\":1} and more] stop");
  EXPECT_EQ(parsed("Sure:\n```json\n{\"a\":1}\n```\ndone", json_options()), "T[{\"a\":1}] stop");
}

TEST(OutputFaults, JsonModeCallLeakIsParsed) {
  const std::string calls = block(invoke("f", param("a", "1", false)));
  EXPECT_EQ(parsed("{\"a\":1}\n\n" + calls, json_options()),
            "T[{\"a\":1}] C[f {\"a\": 1}] tool_calls");
  EXPECT_EQ(parsed("{\"a\":\"" + calls + "\"}", json_options()),
            "T[{\"a\":\"" + calls + "\"}] stop");
}

TEST(OutputFaults, JsonFenceInStringDoesNotEndTheAnswer) {
  EXPECT_EQ(parsed("{\"a\":\"\n```\n\"}", json_options()), "T[{\"a\":\"\n```\n\"}] stop");
  EXPECT_EQ(parsed("```json\n{\"a\":\"\\\"\n```\n\"}\n```", json_options()),
            "T[{\"a\":\"\\\"\n```\n\"}] stop");
}

TEST(OutputFaults, JsonSchemaFenceIsStripped) {
  OutputStream::Options options = output_options();
  options.parser.parsing.strip_json_fence = true;
  EXPECT_EQ(parsed("```json\n{\"a\":1}\n```", options), "T[{\"a\":1}] stop");
  EXPECT_EQ(parsed("{\"a\":1}", options), "T[{\"a\":1}] stop");
}

TEST(OutputFaults, EosLeakIsStripped) {
  EXPECT_EQ(parsed("abc<｜end▁of▁sentence｜>", output_options()), "T[abc] stop");
  EXPECT_EQ(parsed("<｜begin▁of▁sentence｜>a</think>b<｜end▁of▁sentence｜>", thinking_options()),
            "R[a] T[b] stop");
  EXPECT_EQ(parsed(block(invoke("f", "")) + "<｜end▁of▁sentence｜>", output_options()),
            "C[f {}] tool_calls");
}

TEST(OutputFaults, DupParamLastValueWins) {
  const std::string twice = block(invoke("f", param("a", "1") + param("b", "2") + param("a", "3")));
  EXPECT_EQ(parsed(twice, output_options()), "C[f {\"a\": \"3\", \"b\": \"2\"}] tool_calls");
  // What a stream handed out cannot be changed; the key is not repeated.
  OutputStream::Options options = output_options();
  options.parser.arguments.hold_bytes = 0;
  EXPECT_EQ(parsed(twice, options), "C[f {\"a\": \"1\", \"b\": \"2\"}] tool_calls");
  options.parser.arguments.hold_bytes = 128;
  EXPECT_EQ(parsed(twice, options), "C[f {\"a\": \"3\", \"b\": \"2\"}] tool_calls");
}

TEST(OutputFaults, SecondBlockIsParsed) {
  EXPECT_EQ(parsed(block(invoke("f", "")) + "\n" + block(invoke("g", "")), output_options()),
            "C[f {}] C[g {}] tool_calls");
}

// parallel_tool_calls: false.
TEST(OutputFaults, SingleCallEndsTheAnswer) {
  const std::string f = invoke("f", param("a", "1", false)), g = invoke("g", "");
  const std::string open_f = "<｜DSML｜ invoke name=\"f\">\n" + param("a", "1", false);
  OutputStream::Options options = output_options();
  EXPECT_EQ(parsed("T\n\n" + block(f + g) + "more", options),
            "T[Tmore] C[f {\"a\": 1}] C[g {}] tool_calls");
  options.parser.parsing.single_call = true;
  EXPECT_EQ(parsed("T\n\n" + block(f + g) + "more", options), "T[T] C[f {\"a\": 1}] tool_calls");
  EXPECT_EQ(parsed(block(f) + "\n" + block(g), options), "C[f {\"a\": 1}] tool_calls");
  EXPECT_EQ(parsed(block(open_f + g), options), "C[f {\"a\": 1}] tool_calls");
  EXPECT_EQ(parsed(block(g + f), options, FinishReason::kLength), "C[g {}] tool_calls");
  EXPECT_EQ(parsed("No call.", options), "T[No call.] stop");
  // Nothing more is needed from the engine, and what it still sends is not read.
  OutputStream stream(options, nullptr, CallIds::from_seed(0));
  std::vector<OutputEvent> events;
  stream.push_text("<｜DSML｜ calls>\n" + f, 9, &events);
  EXPECT_TRUE(stream.finished());
  const size_t num_events = events.size();
  stream.push_text(g, 3, &events);
  EXPECT_EQ(events.size(), num_events);
}

TEST(OutputFaults, TextAfterBlockIsShown) {
  EXPECT_EQ(parsed(block(invoke("f", "")) + "\nDone.", output_options()),
            "T[Done.] C[f {}] tool_calls");
  EXPECT_EQ(parsed("hm\n\n" + block(invoke("f", "")) + "</think>done", thinking_options()),
            "R[hm] T[done] C[f {}] tool_calls");
  EXPECT_EQ(parsed(block(invoke("f", "")) + "\n\n", output_options()), "C[f {}] tool_calls");
  // One closing tag too many is no text.
  EXPECT_EQ(parsed(block(invoke("f", "")) + "\n</｜DSML｜ calls>\nDone.", output_options()),
            "T[Done.] C[f {}] tool_calls");
}

TEST(OutputFaults, ForcedTextLostIsShown) {
  OutputStream::Options options = output_options();
  options.parser.parsing.starts_in_tool_calls = true;
  EXPECT_EQ(parsed("Sorry, I cannot.", options), "T[Sorry, I cannot.] stop");
  EXPECT_EQ(parsed("<i>no</i>", options), "T[<i>no</i>] stop");
}

TEST(OutputFaults, HistoryCallLeakIsHidden) {
  OutputStream::Options options = output_options();
  options.parser.parsing.parse_tool_calls = false;
  options.parser.hide_tool_calls = true;
  EXPECT_EQ(parsed("x\n\n" + block(invoke("f", param("a", "1"))) + "\ny", options), "T[xy] stop");
  EXPECT_EQ(parsed("about ｜DSML｜ and <｜DSML｜x>", options),
            "T[about ｜DSML｜ and <｜DSML｜x>] stop");
}

TEST(OutputFaults, AsciiBarsAndDoubledBarsAreRecognised) {
  const auto spelled = [](std::string_view bars) {
    std::string text = block(invoke("f", param("a", "1")));
    for (size_t at = 0; (at = text.find("｜", at)) != std::string::npos; at += bars.size()) {
      text.replace(at, std::string_view("｜").size(), bars);
    }
    return text;
  };
  for (const std::string_view bars : {"|", "||", "｜｜", "|｜"}) {
    EXPECT_EQ(parsed(spelled(bars), output_options()), "C[f {\"a\": \"1\"}] tool_calls") << bars;
  }
}

TEST(OutputFaults, JsonValueTailBelongsToTheValue) {
  EXPECT_EQ(parsed(block(invoke("f", param("a", "x</｜DSML｜ parameter>y"))), output_options()),
            "C[f {\"a\": \"x</｜DSML｜ parameter>y\"}] tool_calls");
  EXPECT_EQ(parsed(block(invoke("f", param("a", "x</｜DSML｜ invoke>y"))), output_options()),
            "C[f {\"a\": \"x</｜DSML｜ invoke>y\"}] tool_calls");
  for (const std::string quoted : {"</｜DSML｜ calls>", "</｜DSML｜ invoke>"}) {
    EXPECT_EQ(parsed(block(invoke("f", param("a", quoted))), output_options()),
              "C[f {\"a\": \"" + quoted + "\"}] tool_calls");
  }
}

}  // namespace
}  // namespace fathom::codec
