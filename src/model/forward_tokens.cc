// From rows of logits to tokens: drawn where the logits are, or shown to the host.

#include "model/forward_pass.h"

namespace fathom::model {

Status ForwardPass::take(const RowDraws& draws, std::span<const int64_t> drawn_rows,
                         std::span<int32_t> tokens, std::span<const int64_t> rows,
                         std::span<const float*> logits, DrawnLogprobs* logprobs) {
  const int64_t vocab = c_.vocab_size;
  // First: nothing that may fail without waiting comes after a kernel has been told where to write.
  FATHOM_TRY(reserve_host_rows(std::ssize(rows)));
  if (!draws.rows.empty()) {
    const int32_t* drawn = draw_rows(draws, ws_.logits.data(), drawn_rows, nullptr, tokens.data());
    if (!draws.with_logprobs.empty()) measure(draws, drawn_rows, drawn, *logprobs);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    logits[i] = host_row(ws_.logits.data() + rows[i] * vocab, static_cast<int64_t>(i));
  }
  return stream_->synchronize();
}

ForwardPass::DeviceDraws ForwardPass::upload(const RowDraws& draws) {
  const uint32_t* masks = nullptr;
  if (!draws.masks.empty()) masks = stream_->upload(draws.masks.data(), std::ssize(draws.masks));
  const kernels::LogitEdit* edits = nullptr;
  if (!draws.edits.empty()) edits = stream_->upload(draws.edits.data(), std::ssize(draws.edits));
  return {stream_->upload(draws.rows.data(), std::ssize(draws.rows)), masks, edits};
}

// Log-probabilities of the tokens `drawn` [draws.rows], on the device.
void ForwardPass::measure(const RowDraws& draws, std::span<const int64_t> drawn_rows,
                          const int32_t* drawn, DrawnLogprobs& out) {
  const int64_t n = std::ssize(draws.with_logprobs), num_top = draws.num_top;
  measured_rows_.clear();
  for (const int64_t k : draws.with_logprobs) {
    measured_rows_.push_back(drawn_rows[static_cast<size_t>(k)]);
  }
  out.values.resize(static_cast<size_t>(n * (1 + num_top)));
  out.top.resize(static_cast<size_t>(n * num_top));
  ops_.run(kernels::RowLogprobsArgs{
      .logits = ws_.logits.data(),
      .row = stream_->upload(measured_rows_.data(), n),
      .ids = drawn,
      .id_at = stream_->upload(draws.with_logprobs.data(), n),
      .logprobs = stream_->output(out.values.data(), n * (1 + num_top)),
      .top = num_top == 0 ? nullptr : stream_->output(out.top.data(), n * num_top),
      .num_rows = n,
      .num_top = num_top,
      .width = c_.vocab_size,
      .stream = stream_});
}

const int32_t* ForwardPass::draw_rows(const RowDraws& draws, const float* a,
                                      std::span<const int64_t> a_row, const float* b,
                                      int32_t* tokens) {
  const int64_t n = std::ssize(draws.rows);
  const DeviceDraws how = upload(draws);
  int32_t* drawn = stream_->output(tokens, n);
  ops_.run(kernels::RowDrawArgs{.a = a,
                                .a_row = stream_->upload(a_row.data(), n),
                                .b = b,
                                .draws = how.rows,
                                .masks = how.masks,
                                .edits = how.edits,
                                .tokens = drawn,
                                .num_rows = n,
                                .width = c_.vocab_size,
                                .stream = stream_});
  return drawn;
}

Status ForwardPass::reserve_host_rows(int64_t n) {
  const int64_t bytes = n * c_.vocab_size * int64_t{sizeof(float)};
  if (bytes <= host_rows_.size() || m_.device_.shares_host_memory()) return Status();
  host_rows_ = Buffer();  // first, so that both are never there together
  FATHOM_ASSIGN(host_rows_, m_.device_.allocate_host(bytes, stream_->pool()));
  return Status();
}

const float* ForwardPass::host_row(const float* row, int64_t place) {
  if (m_.device_.shares_host_memory()) return row;
  float* to = reinterpret_cast<float*>(host_rows_.data()) + place * c_.vocab_size;
  stream_->copy(to, row, static_cast<size_t>(c_.vocab_size) * sizeof(float));
  return to;
}

}  // namespace fathom::model
