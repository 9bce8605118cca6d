// The prompt of a conversation: the text and control tokens that the model was trained on, and its
// ids.
//
// Text of users never becomes a control token, whatever it spells: only what the renderer itself
// writes does.  Those places are `controls`; each is one id, and the text between two of them is
// encoded on its own, without added tokens.
//
// Thread: any; pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codec/conversation.h"
#include "fathom/status.h"

namespace fathom::codec {

class Tokenizer;

// Which earlier reasoning the prompt shows again.
enum class DropThinking {
  kRecipe,     // with tools all of it, without tools none: what the released service does
  kReference,  // without tools that after the last user message: the encoder of the weights
  kNever,
};

struct RenderOptions {
  ModelVersion version = ModelVersion::kV41Flash;
  DropThinking drop_thinking = DropThinking::kRecipe;  // V4.1 only
  SpecialTokens special_tokens = {};
};

struct Prompt {
  struct Range {
    size_t begin;  // byte offsets in `text`
    size_t end;
    bool operator==(const Range&) const = default;
  };
  std::string text;  // for people, too: text that looks like a control token may be a user's
  std::vector<Range> controls;  // ascending, not overlapping
  // In the order of their placeholders.  They belong to the conversation that was rendered.
  std::vector<const ImageSource*> images;
};

// Errors (kInvalidArgument): a message with fewer placeholders than images, or an image whose
// offset is not that of a placeholder.
Result<Prompt> render_prompt(const Conversation& conversation, const RenderOptions& options);

// One id for each control token, image placeholders included.  Error (kFailedPrecondition): the
// tokenizer lacks a control token that the prompt needs.
Result<std::vector<int32_t>> encode_prompt(const Tokenizer& tokenizer, const Prompt& prompt);

// Where an image stands in the ids: `count` times the id of the placeholder (docs/spec/model.md
// 9.4).
struct ImageSpan {
  size_t image = 0;  // index in Prompt::images
  size_t begin = 0;  // index of the first id
  size_t count = 0;
  bool operator==(const ImageSpan&) const = default;
};

struct ExpandedPrompt {
  std::vector<int32_t> ids;
  std::vector<ImageSpan> images;  // the k-th belongs to the k-th placeholder and image
};

// The ids with each placeholder repeated as often as its image has tokens.  `num_tokens`: of each
// of prompt.images, in their order.  Error: that of encode_prompt().
Result<ExpandedPrompt> expand_images(const Tokenizer& tokenizer, const Prompt& prompt,
                                     std::span<const size_t> num_tokens);

}  // namespace fathom::codec
