#include "runner/loaded_model.h"

#include "model/class_map.h"

namespace fathom::runner {

Result<LoadedModel> load_model(const std::filesystem::path& dir, const LoadOptions& options,
                               std::vector<int32_t> class_map) {
  FATHOM_ASSIGN(model::ModelConfig config, model::load_config(dir));
  FATHOM_ASSIGN(weights::Checkpoint checkpoint, weights::Checkpoint::open(dir));
  if (class_map.empty()) {
    FATHOM_ASSIGN(class_map, model::load_class_map(dir, config));
  }
  return load_model(std::move(config), std::move(checkpoint), std::move(class_map), options);
}

Result<LoadedModel> load_model(model::ModelConfig config, weights::Checkpoint checkpoint,
                               std::vector<int32_t> class_map, const LoadOptions& options) {
  if (const std::string missing = missing_feature(options.isa); !missing.empty()) {
    return Status(StatusCode::kUnimplemented, "this CPU has no " + missing + ", which --isa " +
                                                  std::string(isa_name(options.isa)) + " needs");
  }
  LoadedModel loaded;
  Device& device = options.device != nullptr ? *options.device : cpu_device();
  FATHOM_ASSIGN(loaded.stream, device.make_stream(options.num_threads));
  loaded.checkpoint = std::make_unique<weights::Checkpoint>(std::move(checkpoint));
  FATHOM_ASSIGN(loaded.model,
                model::Model::create(
                    std::move(config), *loaded.checkpoint, std::move(class_map),
                    kernels::Ops(device.kind(), options.isa, options.numerics, options.probe),
                    options.block_tokens, *loaded.stream, device, options.placement));
  return loaded;
}

}  // namespace fathom::runner
