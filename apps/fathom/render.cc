// fathom render: a request as the prompt and the ids that the model sees.
#include "codec/json_text.h"
#include "codec/prompt.h"
#include "codec/request.h"
#include "commands.h"
#include "engine.h"
#include "failure.h"
#include "images.h"
#include "json_writer.h"
#include "output.h"

namespace fathom::app {
namespace {

Result<codec::ConversationRequest> read(const RenderCommandOptions& options) {
  const std::string where = options.file == "-" ? "standard input" : options.file;
  FATHOM_ASSIGN(const std::string text, read_text(options.file));
  codec::ConvertOptions convert;
  convert.models.clear();
  convert.any_model = options.v4 ? codec::ModelVersion::kV4Pro : codec::ModelVersion::kV41Flash;
  const auto protocol = codec::parse_protocol(options.protocol);
  if (!protocol) return wrong_use("unknown protocol " + options.protocol);
  Result<codec::JsonValue> body = codec::parse_json(text);
  if (!body) return wrong_use(where + ": not valid JSON: " + body.error().message());
  if (body->if_array() != nullptr && *protocol == codec::Protocol::kChatCompletions) {
    codec::JsonObject object;
    object.append("messages", *std::move(body));
    body = codec::JsonValue(std::move(object));
  }
  Result<codec::ConversationRequest> request = codec::convert_request(*protocol, *body, convert);
  if (!request) return std::move(request).error().with_context(where);
  return request;
}

using LoadedImages = std::vector<codec::LoadedImage>;

Result<LoadedImages> load(const RenderCommandOptions& options, const codec::Prompt& prompt) {
  // The sizes that the model named by --model wants; without one those of the release.
  codec::ImagePlanConfig config;
  if (!options.model.empty()) {
    FATHOM_ASSIGN(const std::filesystem::path dir, find_model(options.model));
    FATHOM_ASSIGN(const model::ModelConfig model, model::load_config(dir));
    config = image_plan_config(model);
  }
  return load_prompt_images(prompt, options.images, config);
}

Result<std::vector<int32_t>> encode(const RenderCommandOptions& options,
                                    const codec::Prompt& prompt, const LoadedImages& images) {
  std::unique_ptr<codec::Tokenizer> tokenizer;
  if (options.tokenizer_file) {
    FATHOM_ASSIGN(tokenizer, codec::Tokenizer::load(*options.tokenizer_file));
  } else {
    FATHOM_ASSIGN(const std::filesystem::path dir, find_model(options.model));
    FATHOM_ASSIGN(tokenizer, load_tokenizer(dir));
  }
  std::vector<size_t> num_tokens;
  for (const codec::LoadedImage& image : images) {
    num_tokens.push_back(static_cast<size_t>(image.plan.num_tokens));
  }
  FATHOM_ASSIGN(codec::ExpandedPrompt expanded,
                codec::expand_images(*tokenizer, prompt, num_tokens));
  return std::move(expanded.ids);
}

std::string as_json(const codec::Prompt& prompt, const LoadedImages& images,
                    const std::vector<int32_t>* ids) {
  JsonWriter json;
  json.begin_object().member("prompt", prompt.text);
  json.key("controls").begin_array();
  for (const codec::Prompt::Range& range : prompt.controls) {
    json.begin_array().value(range.begin).value(range.end).end_array();
  }
  json.end_array().key("images").begin_array();
  for (size_t i = 0; i < prompt.images.size(); ++i) {
    const codec::ImageSource* image = prompt.images[i];
    json.begin_object().member("path", image->path);
    if (i < images.size()) {
      const codec::ImagePlan& plan = images[i].plan;
      json.member("bytes", images[i].bytes.size()).member("width", plan.width);
      json.member("height", plan.height).member("tokens", plan.num_tokens);
    }
    json.member("detail", codec::image_detail_name(image->detail));
    const bool is_url = image->kind == codec::ImageSource::Kind::kUrl;
    json.member(is_url ? "url" : "data_url", image->data).end_object();
  }
  json.end_array();
  if (ids != nullptr) {
    json.key("ids").begin_array();
    for (const int32_t id : *ids) json.value(id);
    json.end_array();
  }
  json.end_object();
  return json.text() + "\n";
}

Status render(const RenderCommandOptions& options) {
  FATHOM_ASSIGN(const codec::ConversationRequest request, read(options));
  codec::RenderOptions render_options;
  render_options.version = request.model_version;
  FATHOM_ASSIGN(const codec::Prompt prompt,
                codec::render_prompt(request.conversation, render_options));
  LoadedImages images;
  if (options.load_images) {
    FATHOM_ASSIGN(images, load(options, prompt));
  }
  std::vector<int32_t> ids;
  if (options.ids) {
    FATHOM_ASSIGN(ids, encode(options, prompt, images));
  }
  if (options.json) return print(as_json(prompt, images, options.ids ? &ids : nullptr));
  if (!options.ids) return print(prompt.text + "\n");
  std::string text;
  for (const int32_t id : ids) text += (text.empty() ? "" : ",") + std::to_string(id);
  return print(text + "\n");
}

}  // namespace

int run_render(const RenderCommandOptions& options) {
  const Status status = render(options);
  return is_closed_output(status) ? kExitDone : finish(status);
}

}  // namespace fathom::app
