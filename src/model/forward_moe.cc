// Mixture of experts of one layer (docs/spec/model.md 6.1, 6.2).

#include "model/forward_pass.h"

namespace fathom::model {

void ForwardPass::moe(int32_t layer, const RowSet& rows, const Bf16* u, Bf16* y,
                      LayerProbe* probe) {
  const MoeWeights& w = m_.weights_.layers[static_cast<size_t>(layer)].moe;
  const int64_t n = rows.num_rows, num_experts = std::ssize(w.experts);
  const int64_t k =
      is_draft_stage(layer) ? c_.dspark_num_experts_per_token : c_.num_experts_per_token;
  float* z = ws_.gate.get(n * num_experts);
  int32_t* expert = ws_.expert.get(n * k);
  float* weight = ws_.expert_weight.get(n * k);
  kernels::LinearArgs linear{.x = u,
                             .x_stride = c_.hidden_size,
                             .num_tokens = n,
                             .quantize_input = false,
                             .num_targets = 1,
                             .targets = {},
                             .stream = stream_};
  linear.targets[0] = {.w = w.gate, .y_f32 = z, .y_stride = num_experts};
  ops_.run(linear);
  ops_.run(kernels::MoeRouteArgs{.z = z,
                                 .bias = w.bias,
                                 .bias_vl = w.bias_vl,
                                 .is_image = rows.any_image ? rows.device.is_image : nullptr,
                                 .expert = expert,
                                 .weight = weight,
                                 .num_tokens = n,
                                 .num_experts = num_experts,
                                 .k = k,
                                 .normalize = c_.norm_topk_prob && k > 1,
                                 .scale = c_.routed_scaling_factor,
                                 .stream = stream_});
  if (probe != nullptr) {
    std::vector<int32_t> host(static_cast<size_t>(n * k));
    stream_->copy(host.data(), expert, host.size() * sizeof(int32_t));
    if (stream_->wait().ok()) probe->routed(layer, host);
  }
  if (w.home != nullptr) {
    ops_.run(kernels::FetchPickedArgs{.picks = expert,
                                      .from = w.home,
                                      .to = w.arena,
                                      .num_picks = n * k,
                                      .num_records = num_experts,
                                      .record_bytes = w.record_bytes,
                                      .stream = stream_});
  }
  ops_.run(kernels::MoeExpertsArgs{.x = u,
                                   .expert = expert,
                                   .weight = weight,
                                   .experts = w.device_experts,
                                   .routed = w.experts[0].w1.dtype,
                                   .shared = w.shared,
                                   .y = y,
                                   .num_tokens = n,
                                   .num_experts = num_experts,
                                   .k = k,
                                   .hidden = c_.hidden_size,
                                   .width = c_.moe_intermediate_size,
                                   .limit = c_.swiglu_limit,
                                   .stream = stream_});
}

}  // namespace fathom::model
