// make_checkpoint: writes a checkpoint of made-up weights in the released format.
//
//   make_checkpoint --preset t1 --out DIR                       the golden test model, bit for bit
//   make_checkpoint --preset slice --layers 4 --experts 16 --weights random --out DIR
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "model/presets.h"
#include "model/synthetic.h"

namespace {

using fathom::Result;
using fathom::Status;
using fathom::StatusCode;
namespace model = fathom::model;

struct Options {
  std::string preset = "t1";
  std::string out;
  std::string weights = "oracle";
  uint64_t seed = 0;
  int32_t num_layers = 4;
  int32_t num_experts = 0;    // 0: the preset's
  int32_t draft_experts = 0;  // of a slice; 0: no draft module
  int64_t engram_rows = int64_t{1} << 20;
  uint64_t max_shard_bytes = uint64_t{8} << 30;
};

Result<model::ModelConfig> make_config(const Options& options) {
  if (options.preset == "slice") {
    return model::release_slice(options.num_layers,
                                options.num_experts == 0 ? 384 : options.num_experts,
                                options.engram_rows, options.draft_experts);
  }
  if (options.draft_experts != 0) {
    return Status(StatusCode::kInvalidArgument,
                  "--draft-experts is for --preset slice; the others have their own");
  }
  FATHOM_ASSIGN(model::ModelConfig config, model::preset_config(options.preset));
  if (options.num_experts != 0) config.num_experts = options.num_experts;
  return config;
}

Status run(const Options& options) {
  FATHOM_ASSIGN(const model::ModelConfig config, make_config(options));
  const auto kind =
      options.weights == "random" ? model::SyntheticKind::kRandom : model::SyntheticKind::kOracle;
  return model::write_checkpoint(config, kind, options.seed, options.out,
                                 static_cast<int64_t>(options.max_shard_bytes));
}

int exit_code(StatusCode code) {
  if (code == StatusCode::kInvalidArgument || code == StatusCode::kFailedPrecondition) return 2;
  return code == StatusCode::kResourceExhausted ? 4 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Writes a checkpoint of made-up weights in the released format.");
  app.add_option("--preset", options.preset,
                 "t1, k1, s0, s1, release (510 GB), or slice: layers of the release's real widths")
      ->capture_default_str();
  app.add_option("--out", options.out, "folder to write; must be absent or empty")->required();
  app.add_option("--weights", options.weights,
                 "oracle: real quantization, seed 0 equals tiny_oracle.py; random: fast")
      ->check(CLI::IsMember({"oracle", "random"}))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "another seed, other weights")->capture_default_str();
  app.add_option("--layers", options.num_layers, "layers of a slice")->capture_default_str();
  app.add_option("--experts", options.num_experts, "routed experts a layer; 0: the preset's")
      ->check(CLI::Range(0, 65536))
      ->capture_default_str();
  app.add_option("--draft-experts", options.draft_experts,
                 "routed experts of each draft stage of a slice; 0: no draft module")
      ->check(CLI::Range(0, 65536))
      ->capture_default_str();
  app.add_option("--engram-rows", options.engram_rows, "rows of the Engram table of a slice")
      ->capture_default_str();
  app.add_option("--max-shard", options.max_shard_bytes, "bytes of data in a shard (512M, 8G)")
      ->transform(CLI::AsSizeValue(false));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  const Status status = run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "make_checkpoint: %s\n", status.to_string().c_str());
  return exit_code(status.code());
}
