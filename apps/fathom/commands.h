// The commands of the program; each returns its exit code.
#pragma once

#include "options.h"

namespace fathom::app {

int run_generate(const GenerateOptions& options);
int run_chat(const ChatOptions& options);
int run_info(const InfoOptions& options);
int run_tokenize(const TokenizeOptions& options);
int run_render(const RenderCommandOptions& options);
int run_eval(const EvalOptions& options);
int run_calibrate(const CalibrateOptions& options);

}  // namespace fathom::app
