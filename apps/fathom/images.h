// The images of a prompt: loaded, checked, decoded.
#pragma once

#include <vector>

#include "codec/image_source.h"
#include "codec/prompt.h"
#include "fathom/status.h"
#include "model/config.h"
#include "options.h"

namespace fathom::app {

codec::ImagePlanConfig image_plan_config(const model::ModelConfig& config);

// In the order of their placeholders.  Error: what the client would be told of the first image that
// cannot be used.
Result<std::vector<codec::LoadedImage>> load_prompt_images(const codec::Prompt& prompt,
                                                           const ImageOptions& options,
                                                           const codec::ImagePlanConfig& config);

// What generating an answer needs of them: all of it is done and checked up to the pixels, and then
// refused, because the vision tower is not run yet.  Error also without images' fault: the model
// has no vision weights.
Status check_images(const codec::Prompt& prompt, const ImageOptions& options,
                    const model::ModelConfig& config);

}  // namespace fathom::app
