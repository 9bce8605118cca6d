// The rows of a pass, from its batch (model/row_set.h).

#include <algorithm>

#include "base/check.h"
#include "model/forward_pass.h"

namespace fathom::model {

std::optional<uint64_t> ForwardPass::shape_of(const Batch& batch, bool keeps_logits) const {
  constexpr int64_t kRowsMost = 2048;
  int64_t num_rows = 0, num_runs = 0, num_alike = 0;
  const std::byte* last = nullptr;
  for (const Segment& s : batch.segments) {
    if (s.num_rows > 1 + m_.max_drafts()) return std::nullopt;
    num_rows += s.num_rows;
    if (s.num_rows > 0 && s.state != last) ++num_runs;
    if (s.num_rows > 0) last = s.state;
    num_alike += s.decoder_floor == s.window_floor ? 1 : 0;
  }
  if (num_rows == 0 || num_rows > kRowsMost) return std::nullopt;
  uint64_t shape = batch.keep_draft_rows ? 1 : 0;  // first: forward_draft.cc begins with others
  const auto add = [&](int64_t n) { shape = shape * 1099511628211u + static_cast<uint64_t>(n); };
  add(keeps_logits ? 1 : 0);
  add(num_rows);
  add(num_runs);
  add(num_alike);
  add(Model::num_logit_rows(batch));
  for (const auto& [ratio, groups] : groups_) {
    int64_t num_groups = 0;
    for (const Segment& s : batch.segments) {
      num_groups += (s.start + s.num_rows) / ratio - std::max(s.start, s.pages_from) / ratio;
    }
    add(num_groups);
  }
  return shape;
}

void ForwardPass::collect_rows(const Batch& batch) {
  encoder_.clear();
  ids_.clear();
  given_.clear();
  any_given_ = false;
  const Segment* last = nullptr;
  for (const Segment& s : batch.segments) {
    if (s.num_rows == 0) continue;
    FATHOM_CHECK(s.ids.size() == static_cast<size_t>(s.num_rows)) << s.ids.size();
    const Run run{s.state, s.blocks, s.start, 0, s.num_rows, s.pages_from, s.window_floor};
    if (last != nullptr && last->state == s.state) {
      FATHOM_CHECK(last->start + last->num_rows == s.start) << "segments of a sequence must follow";
      encoder_.extend(run, c_.sliding_window);
    } else {
      encoder_.add(run, c_.sliding_window);
    }
    last = &s;
    ids_.insert(ids_.end(), s.ids.begin(), s.ids.end());
    const auto first = static_cast<size_t>(encoder_.num_rows - s.num_rows);
    for (size_t i = 0; i < static_cast<size_t>(s.num_rows); ++i) {
      if (!s.is_image.empty() && s.is_image[i] != 0) {
        encoder_.is_image[first + i] = 1;
        encoder_.any_image = true;
      }
      given_.push_back(s.embeddings.empty() ? nullptr : s.embeddings[i]);
      any_given_ = any_given_ || given_.back() != nullptr;
    }
  }
  encoder_.count_visible(c_);
  upload_rows(encoder_);
  encoder_.device.is_image = stream_->upload(encoder_.is_image.data(), encoder_.num_rows);
  fill_rope(encoder_.position, false, encoder_.rope[0]);
  fill_rope(encoder_.position, true, encoder_.rope[1]);
  for (auto& [ratio, groups] : groups_) {
    find_groups(encoder_, ratio, groups);
    fill_rope(groups.position, true, groups.rope);
  }
  collect_decoder_rows(batch);
}

// Which rows the decoder layers run: in exact mode all; in replay the prompt's last rows, once,
// when its end is in the batch, and every later row.
void ForwardPass::collect_decoder_rows(const Batch& batch) {
  decoder_.clear();
  same_rows_ = true;
  for (const Segment& s : batch.segments) {
    if (s.num_rows == 0) continue;
    const int64_t end = s.start + s.num_rows, first = first_decoder_row(s);
    Run r{s.state, s.blocks, first, 0, end - first, s.pages_from, s.decoder_floor};
    same_rows_ = same_rows_ && first == s.start && s.decoder_floor == s.window_floor;
    if (r.num_rows > 0) {
      const bool follows = !decoder_.runs.empty() && decoder_.runs.back().state == s.state;
      follows ? decoder_.extend(r, c_.sliding_window) : decoder_.add(r, c_.sliding_window);
    }
  }
  if (same_rows_) return;
  decoder_.count_visible(c_);
  upload_rows(decoder_);
  fill_rope(decoder_.position, true, decoder_.rope[1]);
}

// What the kernels of every layer read about the rows, once.
void ForwardPass::upload_rows(RowSet& rows) {
  const int64_t n = rows.num_rows, per_block = m_.kv_layout_.block_tokens();
  for (Run& r : rows.runs) {
    if (r.blocks == nullptr) continue;  // of a draft round
    r.device_blocks = stream_->upload(r.blocks, (r.end() + per_block - 1) / per_block);
  }
  rows.device.run = stream_->upload(rows.run.data(), n);
  rows.device.position = stream_->upload(rows.position.data(), n);
  rows.device.first_window = stream_->upload(rows.first_window.data(), n);
  rows.device.last_window = stream_->upload(rows.last_window.data(), n);
  for (const auto& [ratio, counts] : rows.visible) {
    rows.device.visible[ratio] = stream_->upload(counts.data(), n);
  }
}

void ForwardPass::fill_rope(const std::vector<int64_t>& positions, bool compressed,
                            RopeTable& out) {
  const int64_t n = std::ssize(positions), half = std::ssize(m_.rope_freqs_[0]);
  ops_.run(kernels::RopeTableArgs{.positions = stream_->upload(positions.data(), n),
                                  .freqs = m_.on_device_.rope_freqs[compressed ? 1 : 0],
                                  .cos = out.cos.get(n * half),
                                  .sin = out.sin.get(n * half),
                                  .num_rows = n,
                                  .half = half,
                                  .stream = stream_});
}

}  // namespace fathom::model
