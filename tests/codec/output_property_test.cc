// Random outputs, well formed and broken: where they are cut never matters, and what clients get is
// always in order.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "codec/json_text.h"
#include "codec/output_fixture.h"
#include "codec/tokenizer_fixture.h"
#include "codec/unicode_utf8.h"

namespace fathom::codec {
namespace {

constexpr int kNumOutputs = 4000;

class OutputMaker {
 public:
  explicit OutputMaker(uint32_t seed) : random_(seed) {}

  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  bool one_in(int n) { return below(n) == 0; }

  std::string text() {
    static constexpr std::array kParts = {"a",
                                          "Hello ",
                                          "\n",
                                          "\n\n",
                                          " ",
                                          "<",
                                          "</",
                                          "2 < 3 ",
                                          "<b>",
                                          "｜",
                                          "<｜",
                                          "é漢🦀",
                                          "\"",
                                          "\\",
                                          "{\"a\": 1}",
                                          "[",
                                          "]",
                                          "```",
                                          "```json\n",
                                          "\n```",
                                          "STOP",
                                          "ST",
                                          "ab",
                                          "<｜DSML｜",
                                          "DSML",
                                          "</think>",
                                          "<think>",
                                          "<｜end▁of▁sentence｜>",
                                          "</｜DSML｜ calls>",
                                          "<｜DSML｜ calls>",
                                          "\t\x01",
                                          "parameter name=\"",
                                          "invoke name=\"x\">",
                                          "</｜DSML｜ parameter>",
                                          "x"};
    std::string text;
    for (int n = below(6); n > 0; --n) text += kParts[static_cast<size_t>(below(kParts.size()))];
    return text;
  }

  std::string call_block() {
    std::string calls;
    for (int n = 1 + below(2); n > 0; --n) {
      std::string body;
      for (int p = below(4); p > 0; --p) {
        static constexpr std::array kValues = {"1", "{\"x\": [true]}", "oops",
                                               "",  "\"s\"",           "[1, 2"};
        std::string name = "p" + std::to_string(p) + (one_in(4) ? " \\" : "");
        if (one_in(6)) name = "input";
        body += one_in(2) ? param(name, text())
                          : param(name, kValues[static_cast<size_t>(below(6))], false);
      }
      if (one_in(6)) body = "{\"a\": " + text() + "}\n";
      calls += invoke(one_in(3) ? "get_weather" : "f", body);
    }
    return block(calls);
  }

  std::string output() {
    std::string all;
    if (one_in(2)) all += text() + "</think>\n\n";
    for (int n = below(3); n >= 0; --n) {
      all += text();
      if (one_in(2)) all += "\n\n" + call_block();
    }
    for (int n = one_in(2) ? below(4) : 0; n > 0 && !all.empty(); --n) mutate(&all);
    return all;
  }

  OutputStream::Options options() {
    OutputStream::Options options;
    ParsingOptions& parsing = options.parser.parsing;
    parsing.thinking_initial_stage = static_cast<ParsingOptions::Stage>(below(4));
    options.thinking = below(2) == 0;
    parsing.starts_in_tool_calls = one_in(8);
    parsing.parse_json_output = one_in(4);
    parsing.parse_tool_calls = !one_in(5);
    options.parser.hide_tool_calls = !parsing.parse_tool_calls && one_in(2);
    if (one_in(2)) options.parser.tool_parameters = {{"f", {"x", "p1"}}};
    if (one_in(2)) parsing.stop_sequences = {"STOP", "ab", "\n\n\n", "｜DSML"};
    if (one_in(16)) parsing.stop_sequences = {"\n", "<"};
    static constexpr std::array<size_t, 4> kHolds = {0, 10, 128, SIZE_MAX};
    options.parser.arguments.hold_bytes = kHolds[static_cast<size_t>(below(4))];
    return options;
  }

  std::vector<std::string_view> random_pieces(std::string_view text) {
    std::vector<std::string_view> pieces;
    const int longest = 1 + below(20);
    while (!text.empty()) {
      const size_t n = std::min(text.size(), static_cast<size_t>(1 + below(longest)));
      pieces.push_back(text.substr(0, n));
      text.remove_prefix(n);
    }
    return pieces;
  }

 private:
  void mutate(std::string* text) {
    const auto at = static_cast<size_t>(below(static_cast<int>(text->size())));
    const auto n = static_cast<size_t>(1 + below(12));
    switch (below(4)) {
      case 0:
        text->erase(at, n);
        break;
      case 1:
        text->insert(at,
                     text->substr(static_cast<size_t>(below(static_cast<int>(text->size()))), n));
        break;
      case 2:
        (*text)[at] = static_cast<char>(below(256));
        break;
      default:
        text->resize(at);
    }
  }

  std::mt19937 random_;
};

FinishReason any_reason(OutputMaker* maker) {
  return maker->one_in(3) ? FinishReason::kLength : FinishReason::kStop;
}

TEST(OutputProperty, CuttingTheOutputNeverChangesTheResult) {
  for (uint32_t seed = 0; seed < kNumOutputs; ++seed) {
    OutputMaker maker(seed);
    const std::string text = maker.output();
    const OutputStream::Options options = maker.options();
    const FinishReason reason = any_reason(&maker);
    const std::string whole = line_of(run_pieces({text}, options, reason));
    ASSERT_EQ(whole, line_of(run_pieces(bytes_of(text), options, reason)))
        << "seed " << seed << ", output " << text;
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(whole, line_of(run_pieces(maker.random_pieces(text), options, reason)))
          << "seed " << seed << ", output " << text;
    }
  }
}

TEST(OutputProperty, IdsGiveWhatTheirTextGives) {
  for (uint32_t seed = 0; seed < kNumOutputs / 4; ++seed) {
    OutputMaker maker(seed);
    const OutputStream::Options options = maker.options();
    const std::vector<int32_t> ids = v41().encode(maker.output(), true);
    const bool has_mark = std::find(ids.begin(), ids.end(), 1) != ids.end();
    if (has_mark) continue;  // as an id it is dropped everywhere, as text it may be part of a value
    const std::string text = v41().decode(ids, false);
    for (const size_t at_once : {size_t{1}, size_t{3}, ids.size() + 1}) {
      OutputStream stream(options, &v41(), CallIds::from_seed(0));
      std::vector<OutputEvent> events;
      for (size_t i = 0; i < ids.size(); i += at_once) {
        const auto some = std::span(ids).subspan(i, std::min(at_once, ids.size() - i));
        ASSERT_TRUE(stream.push_tokens(some, {}, &events).ok());
      }
      const bool stopped = stream.finished();
      stream.finish(FinishReason::kStop, &events);
      ParsedOutput output;
      for (const OutputEvent& event : events) output.add(event);
      ASSERT_EQ(line_of(output), line_of(run_pieces({text}, options))) << "seed " << seed;
      if (!stopped) {
        ASSERT_EQ(output.usage.completion_tokens, ids.size()) << "seed " << seed;
      }
      ASSERT_LE(output.usage.reasoning_tokens.value_or(0), ids.size());
    }
  }
}

TEST(OutputProperty, ArgumentsAreJsonObjectsAndTextIsUtf8) {
  for (uint32_t seed = 0; seed < kNumOutputs; ++seed) {
    OutputMaker maker(seed + kNumOutputs);
    const std::string text = maker.output();
    const ParsedOutput output =
        run_pieces(maker.random_pieces(text), maker.options(), any_reason(&maker));
    for (const ParsedCall& call : output.calls) {
      const Result<JsonValue> arguments = parse_json(call.arguments);
      ASSERT_TRUE(arguments.has_value() && arguments->if_object() != nullptr)
          << "seed " << seed << ", arguments " << call.arguments << ", output " << text;
      ASSERT_TRUE(call.complete || output.reason != FinishReason::kStopSequence);
    }
    for (const std::string* part : {&output.reasoning, &output.content}) {
      ASSERT_EQ(valid_utf8_prefix(*part), part->size()) << "seed " << seed;
    }
    ASSERT_EQ(output.stop_sequence.has_value(), output.reason == FinishReason::kStopSequence);
  }
}

TEST(OutputProperty, NoStopSequenceIsEverShown) {
  for (uint32_t seed = 0; seed < kNumOutputs; ++seed) {
    OutputMaker maker(seed);
    OutputStream::Options options = output_options();
    options.parser.parsing.parse_tool_calls = false;
    options.parser.parsing.stop_sequences = {"STOP", "ab", "\n\n\n"};
    const std::string text = maker.output();
    const ParsedOutput output = run_pieces(maker.random_pieces(text), options);
    // Marks that are left out join what was apart; without them the text is searched as it is.
    if (text.find("</think>") != std::string::npos || text.find("<｜end") != std::string::npos)
      continue;
    for (const std::string& stop : options.parser.parsing.stop_sequences) {
      ASSERT_EQ(output.content.find(stop), std::string::npos) << "seed " << seed << ": " << text;
    }
  }
}

// Whatever is written as a call is read as the same call.
TEST(OutputProperty, ArgumentsSurviveTheMarkup) {
  for (uint32_t seed = 0; seed < kNumOutputs / 4; ++seed) {
    OutputMaker maker(seed);
    JsonObject arguments;
    std::string body;
    for (int n = maker.below(5); n > 0; --n) {
      const std::string name = "p" + std::to_string(n);
      std::string value = maker.text();
      if (value.find("DSML") != std::string::npos) value = "plain\n";
      if (maker.one_in(2)) {
        arguments.set(name, JsonValue(value));
        body += param(name, value);
      } else {
        JsonArray list{JsonValue(value), JsonValue(nullptr), JsonValue(1.5)};
        body += param(name, write_json(JsonValue(list), JsonStyle::kPython), false);
        arguments.set(name, JsonValue(std::move(list)));
      }
    }
    const ParsedOutput output =
        run_pieces(maker.random_pieces(block(invoke("f", body))), output_options());
    ASSERT_EQ(output.calls.size(), 1u);
    ASSERT_EQ(output.calls[0].arguments, write_json(JsonValue(arguments), JsonStyle::kPython))
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace fathom::codec
