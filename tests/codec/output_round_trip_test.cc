// An assistant turn that is rendered into a prompt and read as an output is the same turn.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "codec/json_text.h"
#include "codec/output_fixture.h"
#include "codec/prompt.h"

namespace fathom::codec {
namespace {

class TurnMaker {
 public:
  explicit TurnMaker(uint32_t seed) : random_(seed) {}
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

  std::string text() {
    static constexpr std::array kParts = {"a",     "Hello",    "\n\n", " ",         "<",       "</",
                                          "2 < 3", "<b>",      "｜",   "é漢🦀", "\"",      "\\",
                                          "\t",    "｜DSML｜", "\x01", "</｜",      "</think", "{",
                                          "[1]",   "```",      "null", "x"};
    std::string text;
    for (int n = below(7); n > 0; --n) text += kParts[static_cast<size_t>(below(kParts.size()))];
    return text;
  }

  JsonValue value(int depth) {
    switch (below(depth > 3 ? 5 : 7)) {
      case 0:
        return JsonValue(nullptr);
      case 1:
        return JsonValue(below(2) == 0);
      case 2:
        return JsonValue(below(1000000) - 500000);
      case 3:
        return JsonValue(below(100000) / 1024.0);
      case 4:
        return JsonValue(text());
      case 5: {
        JsonArray array;
        for (int n = below(4); n > 0; --n) array.push_back(value(depth + 1));
        return JsonValue(std::move(array));
      }
      default:
        return JsonValue(object(depth + 1));
    }
  }

  JsonObject object(int depth) {
    JsonObject object;
    for (int n = below(5); n > 0; --n) {
      std::string name = text();
      std::erase(name, '"');  // the markup has no way to write one in a name
      object.set(name, value(depth));
    }
    return object;
  }

 private:
  std::mt19937 random_;
};

TEST(OutputRoundTrip, RenderedTurnIsReadAsTheSameTurn) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    TurnMaker maker(seed);
    Conversation conversation;
    conversation.tools.push_back({"f", {}, JsonValue(JsonObject()), {}, false});
    InputMessage user;
    user.content = "question";
    InputMessage turn;
    turn.role = Role::kAssistant;
    turn.content = "answer " + std::to_string(seed);
    turn.reasoning_content = "thought " + std::to_string(seed);
    const int num_calls = 1 + maker.below(3);
    for (int n = 0; n < num_calls; ++n) {
      const std::string number = std::to_string(n);
      turn.tool_calls.push_back({"id" + number, "f" + number,
                                 write_json(JsonValue(maker.object(0)), JsonStyle::kCompact)});
    }
    conversation.messages = {user, turn};
    RenderOptions render;
    render.version = seed % 2 == 0 ? ModelVersion::kV41Flash : ModelVersion::kV4Pro;
    const Result<Prompt> prompt = render_prompt(conversation, render);
    ASSERT_TRUE(prompt.has_value()) << prompt.error().to_string();

    const std::string opening = "<｜Assistant｜><think>";
    const size_t begin = prompt->text.find(opening) + opening.size();
    const size_t end = prompt->text.find("<｜end▁of▁sentence｜>", begin);
    const std::string output = prompt->text.substr(begin, end - begin);
    const ParsedOutput parsed = run_pieces(bytes_of(output), thinking_options());

    ASSERT_EQ(parsed.reasoning, *turn.reasoning_content) << output;
    ASSERT_EQ(parsed.content, turn.content) << output;
    ASSERT_EQ(parsed.calls.size(), turn.tool_calls.size()) << output;
    for (size_t i = 0; i < parsed.calls.size(); ++i) {
      ASSERT_EQ(parsed.calls[i].name, turn.tool_calls[i].name) << output;
      const Result<JsonValue> arguments = parse_json(parsed.calls[i].arguments);
      ASSERT_TRUE(arguments.has_value()) << parsed.calls[i].arguments;
      ASSERT_EQ(write_json(*arguments, JsonStyle::kCompact), turn.tool_calls[i].arguments)
          << "seed " << seed << ": " << output;
    }
  }
}

}  // namespace
}  // namespace fathom::codec
