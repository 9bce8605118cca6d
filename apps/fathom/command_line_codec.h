// Command lines of what concerns the codec: conversations and their prompts.
#pragma once

#include <functional>
#include <string>

#include "command.h"
#include "options.h"

namespace fathom::app {

// --model of every command that reads a checkpoint.
void add_model(Command app, std::string* out);

// --think, --system, --tools, --json-mode: what a conversation asks for besides its messages.
void add_conversation_options(Command app, SamplingOptions* out);
void add_image_options(Command app, ImageOptions* out);

// Each adds a command to `root` that fills `*o` and sets `*run`; both live as long as `root`.
void add_tokenize(Command root, TokenizeOptions* o, std::function<int()>* run);
void add_render(Command root, RenderCommandOptions* o, std::function<int()>* run);

}  // namespace fathom::app
