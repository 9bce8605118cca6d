// The operations on images: image_size, image_resolve, image_tokens.
#include <array>
#include <charconv>
#include <limits>

#include "check_vectors/ops.h"
#include "codec/image_plan.h"
#include "codec/image_source.h"

namespace fathom::check_vectors {

namespace {

using codec::ImageSource;
using codec::JsonArray;
using codec::JsonObject;
using codec::JsonValue;

Outcome failure(const codec::ImageError& error) {
  return Outcome::failed(std::string(codec::image_error_name(error.kind)), error.text);
}

void append_number(size_t value, size_t bytes, std::string* out) {
  for (size_t i = bytes; i > 0; --i) out->push_back(static_cast<char>(value >> 8 * (i - 1) & 0xFF));
}

// The beginning of a PNG file of that size; more is not looked at.
std::string png_of(int64_t width, int64_t height) {
  std::string bytes = "\x89PNG\r\n\x1a\n";
  append_number(13, 4, &bytes);
  bytes += "IHDR";
  append_number(static_cast<size_t>(width), 4, &bytes);
  append_number(static_cast<size_t>(height), 4, &bytes);
  return bytes;
}

Outcome run_size(const JsonObject& vector, Context&) {
  ImageSource source;
  source.kind = ImageSource::Kind::kBytes;
  source.data = png_of(integer_of(vector, "width"), integer_of(vector, "height"));
  if (text_of(vector, "detail") == "low") source.detail = codec::ImageDetail::kLow;
  const codec::LoadedImages loaded = codec::load_images({&source, 1});
  if (loaded.error) return failure(*loaded.error);
  const codec::ImagePlan& plan = loaded.images[0].plan;
  JsonObject result;
  result.append("width", plan.width);
  result.append("height", plan.height);
  result.append("tokens", plan.num_tokens);
  return Outcome::of(std::move(result));
}

ImageSource source_of(const JsonObject& json) {
  ImageSource source;
  if (text_of(json, "kind") == "bytes") {
    source.kind = ImageSource::Kind::kBytes;
    const std::string_view hex = text_of(json, "data");
    for (size_t i = 0; i + 1 < hex.size(); i += 2) {
      int byte = 0;
      std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
      source.data.push_back(static_cast<char>(byte));
    }
  } else {
    source.kind = ImageSource::Kind::kDataUrl;
    source.data = text_of(json, "data_url");
  }
  return source;
}

Outcome run_resolve(const JsonObject& vector, Context&) {
  std::vector<ImageSource> sources;
  const JsonValue* list = vector.find("sources");
  if (list == nullptr || list->if_array() == nullptr) return Outcome::failed("internal", "sources");
  for (int64_t i = 0; i < integer_of(vector, "repeat", 1); ++i) {
    for (const JsonValue& source : *list->if_array()) {
      sources.push_back(source_of(*source.if_object()));
    }
  }
  const codec::LoadedImages loaded = codec::load_images(sources);
  if (loaded.error) return failure(*loaded.error);
  JsonArray images;
  for (const codec::LoadedImage& image : loaded.images) {
    images.emplace_back(JsonArray{image.plan.width, image.plan.height});
  }
  JsonObject result;
  result.append("images", std::move(images));
  return Outcome::of(std::move(result));
}

Outcome run_tokens(const JsonObject& vector, Context&) {
  // These vectors leave out the limit of the file format that the image is sent in.
  codec::ImagePlanConfig config;
  config.max_side = std::numeric_limits<int64_t>::max();
  const Result<codec::ImagePlan> plan = codec::plan_image(
      integer_of(vector, "width"), integer_of(vector, "height"), codec::ImageDetail::kHigh, config);
  if (!plan) return outcome_of(plan.error());
  JsonObject result;
  result.append("n_llm_h", plan->grid_height);
  result.append("n_llm_w", plan->grid_width);
  result.append("best_height", plan->height);
  result.append("best_width", plan->width);
  result.append("num_tokens", plan->num_tokens);
  return Outcome::of(std::move(result));
}

constexpr std::array kOps = {
    Op{"image_size", run_size},
    Op{"image_resolve", run_resolve},
    Op{"image_tokens", run_tokens},
};

}  // namespace

std::span<const Op> image_ops() { return kOps; }

}  // namespace fathom::check_vectors
