// What the two prompt forms have in common: which sections there are, and the pieces that read the
// same in both.  Private to the renderer.
#pragma once

#include <vector>

#include "codec/prompt.h"
#include "codec/render/prompt_writer.h"
#include "codec/render/turns.h"

namespace fathom::codec {

class RendererBase {
 protected:
  // `turns`: of the conversation; a system turn is put before them where sections need one.
  RendererBase(const Conversation& conversation, const RenderOptions& options, ModelVersion version,
               std::vector<Turn> turns);

  // The last turn is an answer that the model goes on with.
  bool is_prefix(size_t turn) const;

  // Tools and response format, as far as there are any, each behind a blank line.
  void write_sections();
  // Before the text of a user or tool turn.
  void write_opener(bool goes_on);
  // Turns of tools and reminders.
  void write_result(const Turn& turn);
  void write_reminder(const Turn& turn);
  // An assistant's turn, with its reasoning if that is shown.
  void write_assistant(const InputMessage& message, bool shows_reasoning, bool is_prefix,
                       bool sorts_calls);
  // Behind the last turn: what the model goes on from, unless that turn is a prefix.
  void write_answer_opening();

  const Conversation& conversation_;
  const SpecialTokens& tokens_;
  const ModelVersion version_;
  PromptWriter out_;
  std::vector<Turn> turns_;
  bool offers_tools_;

 private:
  bool lists_tools_;
  bool has_format_;
};

}  // namespace fathom::codec
