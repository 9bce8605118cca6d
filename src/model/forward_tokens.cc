// From rows of logits to tokens: drawn where the logits are, or shown to the host.

#include "model/forward_pass.h"

namespace fathom::model {

Status ForwardPass::take(const RowDraws& draws, std::span<const int64_t> drawn_rows,
                         std::span<int32_t> tokens, std::span<const int64_t> rows,
                         std::span<const float*> logits) {
  const int64_t vocab = c_.vocab_size;
  if (!draws.rows.empty()) {
    draw_rows(draws, ws_.logits.data(), drawn_rows, nullptr, tokens.data());
  }
  FATHOM_TRY(reserve_host_rows(std::ssize(rows)));
  for (size_t i = 0; i < rows.size(); ++i) {
    logits[i] = host_row(ws_.logits.data() + rows[i] * vocab, static_cast<int64_t>(i));
  }
  return stream_->synchronize();
}

ForwardPass::DeviceDraws ForwardPass::upload(const RowDraws& draws) {
  const uint32_t* masks = nullptr;
  if (!draws.masks.empty()) masks = stream_->upload(draws.masks.data(), std::ssize(draws.masks));
  return {stream_->upload(draws.rows.data(), std::ssize(draws.rows)), masks};
}

void ForwardPass::draw_rows(const RowDraws& draws, const float* a, std::span<const int64_t> a_row,
                            const float* b, int32_t* tokens) {
  const int64_t n = std::ssize(draws.rows);
  const DeviceDraws how = upload(draws);
  ops_.run(kernels::RowDrawArgs{.a = a,
                                .a_row = stream_->upload(a_row.data(), n),
                                .b = b,
                                .draws = how.rows,
                                .masks = how.masks,
                                .tokens = stream_->output(tokens, n),
                                .num_rows = n,
                                .width = c_.vocab_size,
                                .stream = stream_});
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
