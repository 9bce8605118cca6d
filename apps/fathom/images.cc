#include "images.h"

#include <optional>

#include "failure.h"
#include "fetch/image_fetcher.h"
#include "image/patches.h"

namespace fathom::app {

codec::ImagePlanConfig image_plan_config(const model::ModelConfig& config) {
  codec::ImagePlanConfig plan;
  if (config.vision.num_layers == 0) return plan;  // the release's values
  plan.patch = config.vision.patch_size;
  plan.downsample = config.vision.downsample_ratio;
  plan.max_tokens = config.vision.max_image_tokens;
  plan.min_pixels = config.vision.min_pixels;
  return plan;
}

Result<std::vector<codec::LoadedImage>> load_prompt_images(const codec::Prompt& prompt,
                                                           const ImageOptions& options,
                                                           const codec::ImagePlanConfig& config) {
  std::vector<codec::ImageSource> sources;
  for (const codec::ImageSource* image : prompt.images) sources.push_back(*image);
  std::optional<fetch::UrlImageFetcher> fetcher;
  if (options.allow_urls) {
    fetch::FetchPolicy policy;
    policy.trusted_hosts = options.trusted_hosts;
    fetcher.emplace(std::move(policy));
  }
  codec::LoadedImages loaded =
      codec::load_images(sources, {}, config, fetcher ? &*fetcher : nullptr);
  if (!loaded.error) return std::move(loaded.images);
  std::string text = loaded.error->text;
  if (loaded.error->kind == codec::ImageErrorKind::kUrlsOff) text += ", or use --allow-image-urls";
  return wrong_use(std::move(text));
}

Status check_images(const codec::Prompt& prompt, const ImageOptions& options,
                    const model::ModelConfig& config) {
  if (config.vision.num_layers == 0) {
    return wrong_use("the request has images, and this model has no vision weights");
  }
  const codec::ImagePlanConfig plan_config = image_plan_config(config);
  FATHOM_ASSIGN(const std::vector<codec::LoadedImage> images,
                load_prompt_images(prompt, options, plan_config));
  for (size_t i = 0; i < images.size(); ++i) {
    Result<image::ImagePatches> patches =
        image::make_patches(images[i].bytes, images[i].plan, plan_config);
    if (!patches) {
      return wrong_use(prompt.images[i]->path + ": image " + std::to_string(i + 1) +
                       " of the request: " + patches.error().message());
    }
  }
  return Status(
      StatusCode::kUnimplemented,
      "the images are fine, but this version does not run the vision tower of a model yet; "
      "ask without images");
}

}  // namespace fathom::app
