// Random conversations: what is written into a prompt is what is read out of it again.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "codec/json_text.h"
#include "codec/output_fixture.h"
#include "codec/prompt.h"
#include "codec/tokenizer.h"
#include "codec/tokenizer_fixture.h"

namespace fathom::codec {
namespace {

constexpr int kNumConversations = 3000;

class ConversationMaker {
 public:
  explicit ConversationMaker(uint32_t seed) : random_(seed) {}

  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  bool one_in(int n) { return below(n) == 0; }

  // Control tokens that somebody typed are in it; markup of calls and of thinking is not, which an
  // answer cannot hold.
  std::string text() {
    static constexpr std::array kParts = {"a",           "Hello ",     "\n",     "<｜User｜>",
                                          "<｜image｜>", " 漢é🦀", "{\"a\"", "<｜System｜>",
                                          "| < > &",     "x\ty"};
    std::string out;
    for (int i = below(5); i > 0; --i) out += kParts[static_cast<size_t>(below(kParts.size()))];
    return out;
  }

  JsonValue value(int depth) {
    switch (below(depth > 0 ? 7 : 5)) {
      case 0:
        return nullptr;
      case 1:
        return one_in(2);
      case 2:
        return below(1000) - 500;
      case 3:
        return below(1000) * 1e-7;
      case 4:
        return text();
      case 5: {
        JsonArray array;
        for (int i = below(3); i > 0; --i) array.push_back(value(depth - 1));
        return array;
      }
      default: {
        JsonObject object;
        for (int i = below(3); i > 0; --i) object.set("k" + text(), value(depth - 1));
        return object;
      }
    }
  }

  InputMessage message(Role role) {
    InputMessage out;
    out.role = role;
    out.content = text();
    if (role != Role::kAssistant) {
      const bool has_image = role != Role::kLatestReminder && one_in(3);
      out.image_sources.resize(has_image ? 1 : 0);
      for (ImageSource& image : out.image_sources) {
        out.content += "\n\n";
        image.offset = out.content.size();
        out.content += kImagePlaceholder;
      }
      return out;
    }
    out.reasoning_content = text();
    for (int i = one_in(2) ? below(3) : 0; i > 0; --i) {
      JsonObject arguments;
      for (int k = below(3); k > 0; --k) arguments.set("p" + std::to_string(k), value(2));
      out.tool_calls.push_back({"id" + std::to_string(i), "f" + std::to_string(i),
                                write_json(std::move(arguments), JsonStyle::kCompact)});
    }
    return out;
  }

  Conversation conversation() {
    static constexpr std::array kRoles = {Role::kUser, Role::kSystem, Role::kAssistant, Role::kTool,
                                          Role::kLatestReminder};
    Conversation out;
    for (int i = below(6); i > 0; --i) {
      out.messages.push_back(message(kRoles[static_cast<size_t>(below(kRoles.size()))]));
    }
    out.thinking = one_in(2);
    if (one_in(2)) out.tools.emplace_back().name = "f1";
    return out;
  }

 private:
  std::mt19937 random_;
};

std::vector<std::string_view> controls_of(const Prompt& prompt) {
  std::vector<std::string_view> controls;
  for (const Prompt::Range& range : prompt.controls) {
    controls.push_back(std::string_view(prompt.text).substr(range.begin, range.end - range.begin));
  }
  return controls;
}

TEST(PromptProperty, ControlsAreInOrderAndCountTheTurns) {
  ConversationMaker maker(1);
  const SpecialTokens tokens;
  for (int i = 0; i < kNumConversations; ++i) {
    const Conversation conversation = maker.conversation();
    RenderOptions options;
    if (maker.one_in(2)) options.version = ModelVersion::kV4Pro;
    const Result<Prompt> prompt = render_prompt(conversation, options);
    ASSERT_TRUE(prompt) << prompt.error().message();
    size_t end = 0;
    for (const Prompt::Range& range : prompt->controls) {
      ASSERT_LE(end, range.begin);
      ASSERT_LT(range.begin, range.end);
      end = range.end;
    }
    ASSERT_LE(end, prompt->text.size());
    const auto controls = controls_of(*prompt);
    const auto count = [&controls](std::string_view token) {
      return std::count(controls.begin(), controls.end(), token);
    };
    int64_t assistants = 0;
    int64_t images = 0;
    for (const InputMessage& message : conversation.messages) {
      assistants += message.role == Role::kAssistant ? 1 : 0;
      images += static_cast<int64_t>(message.image_sources.size());
    }
    EXPECT_EQ(count(tokens.begin_of_sentence), 1);
    EXPECT_EQ(count(tokens.assistant), assistants + 1);
    EXPECT_EQ(count(tokens.end_of_sentence), assistants);
    EXPECT_EQ(count(tokens.image), images);
    EXPECT_EQ(static_cast<int64_t>(prompt->images.size()), images);
  }
}

TEST(PromptProperty, IdsDecodeToTheTextAndOnlyControlsAreControlIds) {
  ConversationMaker maker(2);
  for (int i = 0; i < 300; ++i) {
    const Conversation conversation = maker.conversation();
    const Result<Prompt> prompt = render_prompt(conversation, {});
    ASSERT_TRUE(prompt);
    const Result<std::vector<int32_t>> ids = encode_prompt(v41(), *prompt);
    ASSERT_TRUE(ids);
    EXPECT_EQ(v41().decode(*ids, /*skip_special=*/false), prompt->text);
    const auto added =
        std::count_if(ids->begin(), ids->end(), [](int32_t id) { return v41().is_added(id); });
    EXPECT_EQ(static_cast<size_t>(added), prompt->controls.size());
  }
}

// The text of an earlier assistant turn is what the model would have written.
TEST(PromptProperty, AnAnswerIsReadBackFromItsPrompt) {
  ConversationMaker maker(3);
  for (int i = 0; i < kNumConversations; ++i) {
    Conversation conversation;
    conversation.tools.emplace_back().name = "f1";
    conversation.messages = {maker.message(Role::kUser), maker.message(Role::kAssistant)};
    InputMessage& answer = conversation.messages[1];
    // Line breaks at the ends belong to the layout.
    answer.content = "b" + answer.content + "e";
    *answer.reasoning_content = "b" + *answer.reasoning_content + "e";
    RenderOptions options;
    if (maker.one_in(2)) options.version = ModelVersion::kV4Pro;
    const Result<Prompt> prompt = render_prompt(conversation, options);
    ASSERT_TRUE(prompt);
    const auto controls = controls_of(*prompt);
    const SpecialTokens tokens;
    const auto begin = std::find(controls.begin(), controls.end(), tokens.assistant) + 1;
    const auto end = std::find(begin, controls.end(), tokens.end_of_sentence);
    ASSERT_EQ(*begin, tokens.think_begin);
    const size_t from = static_cast<size_t>(begin->data() - prompt->text.data()) + begin->size();
    const size_t to = static_cast<size_t>(end->data() - prompt->text.data());

    const ParsedOutput output =
        run_pieces({std::string_view(prompt->text).substr(from, to - from)}, thinking_options());
    EXPECT_EQ(output.reasoning, *answer.reasoning_content);
    EXPECT_EQ(output.content, answer.content);
    const auto calls = [&] {
      std::vector<ToolCall> sorted = answer.tool_calls;
      if (options.version == ModelVersion::kV4Pro) {
        std::sort(sorted.begin(), sorted.end(),
                  [](const ToolCall& a, const ToolCall& b) { return a.id < b.id; });
      }
      return sorted;
    }();
    ASSERT_EQ(output.calls.size(), calls.size()) << prompt->text;
    for (size_t k = 0; k < calls.size(); ++k) {
      EXPECT_EQ(output.calls[k].name, calls[k].name);
      const Result<JsonValue> arguments = parse_json(output.calls[k].arguments);
      ASSERT_TRUE(arguments) << output.calls[k].arguments;
      EXPECT_EQ(*arguments, *parse_json(calls[k].arguments)) << output.calls[k].arguments;
    }
  }
}

}  // namespace
}  // namespace fathom::codec
