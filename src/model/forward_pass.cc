#include "model/forward_pass.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace fathom::model {

ForwardPass::ForwardPass(const Model& model)
    : m_(model),
      c_(model.config_),
      ops_(model.ops_),
      stream_(&model.stream_),
      stream_width_(int64_t{c_.hc_mult} * c_.hidden_size),
      ws_({model.device_, model.stream_}) {
  const auto use_device = [&](RopeTable& table) {
    table.cos = WorkBuffer<float>(ws_.memory);
    table.sin = WorkBuffer<float>(ws_.memory);
  };
  for (RowSet* rows : {&encoder_, &decoder_, &draft_}) {
    for (RopeTable& table : rows->rope) use_device(table);
  }
  for (const int32_t l : c_.kv_source_layers) {
    use_device(groups_[c_.compress_ratios[static_cast<size_t>(l)]].rope);
  }
}

void ForwardPass::run(const Batch& batch, float* logits, LayerProbe* probe) {
  const auto pass = [&] {
    collect_rows(batch);
    if (encoder_.num_rows > 0) run_rows(batch, logits, probe);
  };
  std::optional<uint64_t> shape;
  if (probe == nullptr) shape = shape_of(batch, logits == nullptr);
  if (shape) {
    stream_->repeat(*shape, pass);
  } else {
    pass();
  }
}

void ForwardPass::run_rows(const Batch& batch, float* logits, LayerProbe* probe) {
  embed();
  Bf16* x = ws_.x[0].data();
  float* pre = ws_.pre[0].data();
  const int32_t border = c_.first_decoder_layer();
  for (int32_t l = 0; l < border; ++l) run_layer(l, encoder_, x, pre, probe);

  write_global_rows(border, x, pre);
  if (!same_rows_) enter_decoder();
  hold_entrance_rows();
  if (!same_rows_) {
    x = ws_.x[1].data();
    pre = ws_.pre[1].data();
  }
  RowSet& rows = same_rows_ ? encoder_ : decoder_;
  if (rows.num_rows == 0) return;
  if (batch.keep_draft_rows) choose_draft_rows(rows);
  for (int32_t l = border; l < c_.num_layers; ++l) {
    if (batch.keep_draft_rows) capture_draft_input(l, rows, x);
    run_layer(l, rows, x, pre, probe);
  }
  if (batch.keep_draft_rows) store_draft_rows();
  head(batch, rows, x, pre, logits);
}

void ForwardPass::embed() {
  const int64_t n = encoder_.num_rows, hidden = c_.hidden_size;
  if (any_given_) {
    for (const Bf16*& row : given_) {
      if (row != nullptr) row = stream_->upload(row, hidden);
    }
  }
  embed_rows(n, any_given_ ? stream_->upload(given_.data(), n) : nullptr);
  hash_engram_rows();
}

// The stream of ids_ at the entrance of the first layer.
void ForwardPass::embed_rows(int64_t n, const Bf16* const* given) {
  device_ids_ = stream_->upload(ids_.data(), n);
  ops_.run(kernels::EmbedArgs{.table = m_.weights_.embed,
                              .ids = device_ids_,
                              .given = given,
                              .x = ws_.x[0].get(n * stream_width_),
                              .pre = ws_.pre[0].get(n * c_.hc_mult),
                              .num_tokens = n,
                              .copies = c_.hc_mult,
                              .hidden = c_.hidden_size,
                              .stream = stream_});
}

// On another device than the CPU, a probe sees copies.
void ForwardPass::show_stream(LayerProbe& probe, bool before, int32_t layer, const RowSet& rows,
                              Bf16* x, float* pre) {
  const auto x_size = static_cast<size_t>(rows.num_rows * stream_width_);
  const auto pre_size = static_cast<size_t>(rows.num_rows * c_.hc_mult);
  LayerProbe::Rows view{rows.num_rows, rows.position, {x, x_size}, {pre, pre_size}};
  std::vector<Bf16> host_x;
  std::vector<float> host_pre;
  const bool copies = !m_.device_.shares_host_memory();
  if (copies) {
    host_x.resize(x_size);
    host_pre.resize(pre_size);
    stream_->copy(host_x.data(), x, x_size * sizeof(Bf16));
    stream_->copy(host_pre.data(), pre, pre_size * sizeof(float));
    if (!stream_->wait().ok()) return;
    view.x = host_x;
    view.pre = host_pre;
  }
  before ? probe.before_layer(layer, view) : probe.after_layer(layer, view);
  if (copies) {
    stream_->copy(x, host_x.data(), x_size * sizeof(Bf16));
    stream_->copy(pre, host_pre.data(), pre_size * sizeof(float));
    (void)stream_->wait();  // the copies must not outlive what they read; run() reports errors
  }
}

// docs/spec/model.md 3.4.  A sublayer's input uses the pre of the sublayer before it.
void ForwardPass::run_layer(int32_t layer, RowSet& rows, Bf16* x, float* pre, LayerProbe* probe) {
  const LayerWeights& w = m_.weights_.layers[static_cast<size_t>(layer)];
  const int64_t n = rows.num_rows;
  if (probe != nullptr) show_stream(*probe, true, layer, rows, x, pre);
  if (c_.engram_index(layer) >= 0) engram(layer, rows, x);

  Bf16* u = ws_.u.get(n * c_.hidden_size);
  Bf16* y = ws_.y.get(n * c_.hidden_size);
  float* next_pre = ws_.next_pre.get(n * c_.hc_mult);
  hc_mix(rows, x, w.hc_attn, next_pre);
  hc_in(n, x, pre, w.attn_norm, u);
  attention(layer, rows, u, y, probe);
  hc_out(rows, y, x);

  hc_mix(rows, x, w.hc_ffn, pre);
  hc_in(n, x, next_pre, w.ffn_norm, u);
  moe(layer, rows, u, y, probe);
  hc_out(rows, y, x);
  if (probe != nullptr) show_stream(*probe, false, layer, rows, x, pre);
}

// The decoder's global KV covers every token, so the first decoder layer's compressor runs on all
// encoder rows (docs/spec/model.md 4).
void ForwardPass::write_global_rows(int32_t layer, const Bf16* x, const float* pre) {
  Bf16* u = ws_.u.get(encoder_.num_rows * c_.hidden_size);
  hc_in(encoder_.num_rows, x, pre, m_.weights_.layers[static_cast<size_t>(layer)].attn_norm, u);
  compress(layer, encoder_, u);
}

// Keeps the entrance of the decoder for the newest rows: a prompt may go on in a later chunk, and a
// STATE image saved here may serve a longer prompt.  Comes after enter_decoder, which reads rows
// that this overwrites.
void ForwardPass::hold_entrance_rows() {
  const StateLayout& layout = m_.state_layout_;
  stream_copies_.clear();
  image_copies_.clear();
  for (const Run& r : encoder_.runs) {
    for (int64_t p = std::max(r.start, r.end() - layout.window()); p < r.end(); ++p) {
      const int64_t row = r.first_row + p - r.start;
      stream_copies_.add(stream_row(0, row),
                         {layout.held_x(r.state, p), layout.held_pre(r.state, p)});
      image_copies_.add(encoder_.device.is_image + row, layout.held_image(r.state, p));
    }
  }
  copy_stream_rows();
  copy_rows(image_copies_, 1);
}

// Gathers the decoder's rows: held ones from STATE, new ones from the encoder's stream.
void ForwardPass::enter_decoder() {
  const StateLayout& layout = m_.state_layout_;
  ws_.x[1].get(decoder_.num_rows * stream_width_);
  ws_.pre[1].get(decoder_.num_rows * c_.hc_mult);
  uint8_t* image = ws_.image.get(decoder_.num_rows);
  decoder_.device.is_image = image;
  stream_copies_.clear();
  image_copies_.clear();
  auto source = encoder_.runs.begin();
  for (const Run& r : decoder_.runs) {
    while (source->state != r.state) ++source;
    for (int64_t p = r.start; p < r.end(); ++p) {
      const int64_t to = r.first_row + p - r.start, from = source->first_row + p - source->start;
      const bool held = p < source->start;
      stream_copies_.add(held ? StreamRow{layout.held_x(r.state, p), layout.held_pre(r.state, p)}
                              : stream_row(0, from),
                         stream_row(1, to));
      image_copies_.add(held ? layout.held_image(r.state, p) : encoder_.device.is_image + from,
                        image + to);
      // The marks of held rows are known to the device only.
      decoder_.any_image = decoder_.any_image || held || encoder_.any_image;
    }
  }
  copy_stream_rows();
  copy_rows(image_copies_, 1);
}

// Gathers the rows whose logits are wanted to the front of the head's buffers; returns their
// number.
int64_t ForwardPass::gather_head_rows(const Batch& batch, const RowSet& rows, Bf16* x, float* pre) {
  const int64_t n = Model::num_logit_rows(batch);
  Bf16* head_x = ws_.head_x.get(n * stream_width_);
  float* head_pre = ws_.head_pre.get(n * c_.hc_mult);
  stream_copies_.clear();
  int64_t to = 0;
  auto run = rows.runs.begin();  // in the order of the segments
  for (const Segment& s : batch.segments) {
    if (s.num_logits == 0) continue;
    while (run != rows.runs.end() && run->state != s.state) ++run;
    const int64_t end = s.start + s.num_rows;
    FATHOM_CHECK(run != rows.runs.end() && end - s.num_logits >= run->start)
        << "no decoder row for " << s.num_logits << " logits of [" << s.start << ", " << end
        << "), decoder rows from " << first_decoder_row(s);
    for (int64_t p = end - s.num_logits; p < end; ++p, ++to) {
      const int64_t from = run->first_row + p - run->start;
      stream_copies_.add({x + from * stream_width_, pre + from * c_.hc_mult},
                         {head_x + to * stream_width_, head_pre + to * c_.hc_mult});
    }
  }
  copy_stream_rows();
  return n;
}

void ForwardPass::head(const Batch& batch, const RowSet& rows, Bf16* x, float* pre, float* logits) {
  const int64_t n = gather_head_rows(batch, rows, x, pre);
  if (n == 0) return;
  Bf16* u = ws_.u.get(n * c_.hidden_size);
  hc_in(n, ws_.head_x.data(), ws_.head_pre.data(), m_.weights_.norm, u);
  if (logits == nullptr) {
    project(u, n, m_.weights_.head, ws_.logits.get(n * c_.vocab_size));
  } else {
    project_to_host(u, n, m_.weights_.head, logits);
  }
}

void ForwardPass::project_to_host(const Bf16* x, int64_t n, const WeightMatrix& w, float* y) {
  project(x, n, w, stream_->output(y, n * w.rows));
}

void ForwardPass::project(const Bf16* x, int64_t n, const WeightMatrix& w, float* y) {
  kernels::LinearArgs linear{.x = x,
                             .x_stride = w.cols,
                             .num_tokens = n,
                             .quantize_input = false,
                             .num_targets = 1,
                             .targets = {},
                             .stream = stream_};
  linear.targets[0] = {.w = w, .y_f32 = y, .y_stride = w.rows};
  ops_.run(linear);
}

void ForwardPass::hc_in(int64_t num_rows, const Bf16* x, const float* pre, const uint8_t* norm,
                        Bf16* u) {
  ops_.run(kernels::HcInArgs{.x = x,
                             .pre = pre,
                             .w = norm,
                             .u = u,
                             .num_tokens = num_rows,
                             .copies = c_.hc_mult,
                             .hidden = c_.hidden_size,
                             .eps = c_.rms_norm_eps,
                             .stream = stream_});
}

// Writes the mixes of a sublayer: its pre where told, post and comb to the workspace until hc_out.
void ForwardPass::hc_mix(const RowSet& rows, const Bf16* x, const HyperConnectionWeights& w,
                         float* pre) {
  const int64_t n = rows.num_rows;
  ops_.run(kernels::HcMixArgs{.x = x,
                              .fn = w.fn,
                              .base = w.base,
                              .scale = w.scale,
                              .pre = pre,
                              .post = ws_.post.get(n * c_.hc_mult),
                              .comb = ws_.comb.get(n * c_.hc_mult * c_.hc_mult),
                              .num_tokens = n,
                              .copies = c_.hc_mult,
                              .hidden = c_.hidden_size,
                              .sinkhorn_iters = c_.hc_sinkhorn_iters,
                              .norm_eps = c_.rms_norm_eps,
                              .hc_eps = c_.hc_eps,
                              .stream = stream_});
}

void ForwardPass::hc_out(const RowSet& rows, const Bf16* y, Bf16* x) {
  ops_.run(kernels::HcOutArgs{.y = y,
                              .post = ws_.post.data(),
                              .comb = ws_.comb.data(),
                              .x = x,
                              .num_tokens = rows.num_rows,
                              .copies = c_.hc_mult,
                              .hidden = c_.hidden_size,
                              .stream = stream_});
}

void ForwardPass::rms_norm(const Bf16* x, const uint8_t* w, int64_t rows, int64_t hidden, Bf16* y) {
  ops_.run(kernels::RmsNormArgs{.x = x,
                                .w = w,
                                .y = y,
                                .num_tokens = rows,
                                .hidden = hidden,
                                .eps = c_.rms_norm_eps,
                                .stream = stream_});
}

void ForwardPass::copy_rows(const CopyList& list, int64_t row_bytes) {
  const int64_t n = std::ssize(list.src);
  ops_.run(kernels::CopyRowsArgs{.src = stream_->upload(list.src.data(), n),
                                 .dst = stream_->upload(list.dst.data(), n),
                                 .num_rows = n,
                                 .row_bytes = row_bytes,
                                 .stream = stream_});
}

StreamRow ForwardPass::stream_row(int set, int64_t row) {
  return {ws_.x[set].data() + row * stream_width_, ws_.pre[set].data() + row * c_.hc_mult};
}

void ForwardPass::copy_stream_rows() {
  copy_rows(stream_copies_.x, stream_width_ * int64_t{sizeof(Bf16)});
  copy_rows(stream_copies_.pre, c_.hc_mult * int64_t{sizeof(float)});
}

}  // namespace fathom::model
