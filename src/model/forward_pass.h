// One forward pass: turns a batch into row sets, runs the encoder layers on all rows, the decoder
// layers on those that need them, and the head; and one draft round.  Owned and called by Model.
#pragma once

#include <map>
#include <optional>
#include <span>

#include "model/model.h"
#include "model/row_set.h"
#include "model/workspace.h"

namespace fathom::model {

// Rows to move with kernels/copy_rows.
struct CopyList {
  std::vector<const void*> src;
  std::vector<void*> dst;
  void clear() {
    src.clear();
    dst.clear();
  }
  void add(const void* from, void* to) {
    src.push_back(from);
    dst.push_back(to);
  }
};

// One row of the residual stream with its pre.
struct StreamRow {
  Bf16* x;
  float* pre;
};

struct StreamCopies {
  CopyList x, pre;
  void clear() {
    x.clear();
    pre.clear();
  }
  void add(const StreamRow& from, const StreamRow& to) {
    x.add(from.x, to.x);
    pre.add(from.pre, to.pre);
  }
};

class ForwardPass {
 public:
  explicit ForwardPass(const Model& model);

  // `logits` of the host, or nullptr: they stay on the device.  Does not wait.
  void run(const Batch& batch, float* logits, LayerProbe* probe);
  Status take(const RowDraws& draws, std::span<const int64_t> drawn_rows, std::span<int32_t> tokens,
              std::span<const int64_t> rows, std::span<const float*> logits,
              DrawnLogprobs* logprobs);
  Status run_draft(std::span<const DraftSegment> segments, DraftSampler& sampler,
                   std::span<Draft> drafts);

 private:
  // ---- forward_rows.cc
  // What tells apart steps that have other launches; nullopt: a prompt is in it, so that it hardly
  // comes again.
  std::optional<uint64_t> shape_of(const Batch& batch, bool keeps_logits) const;
  void collect_rows(const Batch& batch);
  void collect_decoder_rows(const Batch& batch);
  void upload_rows(RowSet& rows);
  void fill_rope(const std::vector<int64_t>& positions, bool compressed, RopeTable& out);

  // ---- forward_pass.cc: layers, the border between encoder and decoder, the head
  void run_rows(const Batch& batch, float* logits, LayerProbe* probe);
  void embed();
  void embed_rows(int64_t n, const Bf16* const* given);
  void run_layer(int32_t layer, RowSet& rows, Bf16* x, float* pre, LayerProbe* probe);
  void show_stream(LayerProbe& probe, bool before, int32_t layer, const RowSet& rows, Bf16* x,
                   float* pre);
  void hold_entrance_rows();
  void enter_decoder();
  void write_global_rows(int32_t layer, const Bf16* x, const float* pre);
  int64_t gather_head_rows(const Batch& batch, const RowSet& rows, Bf16* x, float* pre);
  void head(const Batch& batch, const RowSet& rows, Bf16* x, float* pre, float* logits);
  void project(const Bf16* x, int64_t n, const WeightMatrix& w, float* y);
  // To `y` of the host, which has it after stream_->wait().
  void project_to_host(const Bf16* x, int64_t n, const WeightMatrix& w, float* y);
  void hc_in(int64_t num_rows, const Bf16* x, const float* pre, const uint8_t* norm, Bf16* u);
  void hc_mix(const RowSet& rows, const Bf16* x, const HyperConnectionWeights& w, float* pre);
  void hc_out(const RowSet& rows, const Bf16* y, Bf16* x);
  void rms_norm(const Bf16* x, const uint8_t* w, int64_t rows, int64_t hidden, Bf16* y);
  void copy_rows(const CopyList& list, int64_t row_bytes);
  StreamRow stream_row(int set, int64_t row);
  void copy_stream_rows();

  // ---- forward_attention.cc
  bool is_draft_stage(int32_t layer) const { return layer >= c_.num_layers; }
  void attention(int32_t layer, RowSet& rows, const Bf16* u, Bf16* y, LayerProbe* probe);
  void project_queries(const LayerWeights& w, int32_t layer, RowSet& rows, const Bf16* u);
  void choose_rows(int32_t layer, RowSet& rows, const Bf16* u, LayerProbe* probe);
  void pack(const Bf16* x, const RopeTable& rope, kernels::RowFormat format, int64_t rows,
            int64_t heads, int64_t dim);
  void attend(int32_t layer, RowSet& rows);
  void project_output(const AttentionWeights& w, RowSet& rows, bool compressed, Bf16* y);
  void store_window(int32_t layer, const RowSet& rows);

  // ---- forward_compressor.cc
  void compress(int32_t layer, RowSet& rows, const Bf16* u);
  Bf16* pool_groups(int32_t layer, const RowSet& rows, const GroupSet& groups, const Bf16* u);
  Bf16* project_rows(int32_t layer, const RowSet& rows, const GroupSet& groups, const Bf16* u);
  void store_open_rows(int32_t layer, const RowSet& rows);
  void pack_groups(int32_t layer, const RowSet& rows, const GroupSet& groups, Bf16* latent);

  // ---- forward_tokens.cc
  struct DeviceDraws {
    const kernels::RowDraw* rows;
    const uint32_t* masks;
    const kernels::LogitEdit* edits;
  };
  DeviceDraws upload(const RowDraws& draws);
  // Where they are on the device.
  const int32_t* draw_rows(const RowDraws& draws, const float* a, std::span<const int64_t> a_row,
                           const float* b, int32_t* tokens);
  void measure(const RowDraws& draws, std::span<const int64_t> drawn_rows, const int32_t* drawn,
               DrawnLogprobs& out);
  // Where the host sees `row` [vocab] of the device after stream_->wait(): at place `place` of
  // those reserved, or where it is.
  const float* host_row(const float* row, int64_t place);
  Status reserve_host_rows(int64_t n);

  // ---- forward_draft.cc
  void choose_draft_rows(const RowSet& rows);
  void capture_draft_input(int32_t layer, const RowSet& rows, const Bf16* x);
  void store_draft_rows();
  void run_stages(std::span<const DraftSegment> segments);
  void draft_head(std::span<const DraftSegment> segments);
  Status choose_drafts(std::span<const DraftSegment> segments, DraftSampler& sampler,
                       std::span<Draft> drafts);
  Status choose_on_host(DraftSampler& sampler, int32_t i);
  void list_draws_ahead(std::span<const DraftSegment> segments, DraftSampler& sampler);
  void draw_ahead(std::span<const DraftSegment> segments);
  Status take_ahead(std::span<const DraftSegment> segments, DraftSampler& sampler,
                    std::span<Draft> drafts);
  bool list_markov_rows(std::span<const DraftSegment> segments, std::span<const Draft> drafts,
                        size_t i);
  Status judge_drafts(std::span<const DraftSegment> segments, std::span<Draft> drafts);

  // ---- forward_engram.cc, forward_moe.cc
  void hash_engram_rows();
  void engram(int32_t layer, const RowSet& rows, Bf16* x);
  void moe(int32_t layer, const RowSet& rows, const Bf16* u, Bf16* y, LayerProbe* probe);

  const Model& m_;
  const ModelConfig& c_;
  const kernels::Ops& ops_;
  Stream* stream_;
  int64_t stream_width_;  // elements of a row of the residual stream
  Workspace ws_;
  CopyList copies_;
  StreamCopies stream_copies_;

  RowSet encoder_, decoder_;
  bool same_rows_ = false;              // the decoder's rows are the encoder's
  std::map<int32_t, GroupSet> groups_;  // ratio -> groups the batch completes
  std::vector<int32_t> ids_;
  const int32_t* device_ids_ = nullptr;
  std::vector<const Bf16*> given_;
  bool any_given_ = false;
  std::vector<kernels::WindowRows> window_;  // [runs], of the layer being run
  std::vector<kernels::PagedRows> paged_;    // [runs]
  std::vector<kernels::EngramRun> engram_runs_;
  CopyList image_copies_;

  // Rows of the draft windows that a batch makes: the last window of every run.
  struct DraftRow {
    int64_t row;  // of the decoder's rows
    std::byte* state;
  };
  std::vector<DraftRow> draft_rows_;
  std::vector<int64_t> draft_positions_;
  std::vector<float> equal_shares_;  // the weights of a mean over copies

  // A draft round
  RowSet draft_;  // rope[0] also serves draft_rows_
  int64_t num_draft_rows_ = 0;
  struct MarkovRow {
    size_t segment;
    int64_t row;  // of draft_logits
  };
  std::vector<MarkovRow> markov_rows_;
  std::vector<int64_t> markov_at_;  // their rows
  std::vector<int32_t> anchors_;
  RowDraws draws_;
  std::vector<int32_t> drawn_;          // their tokens
  std::vector<bool> is_chosen_;         // by the host
  std::vector<size_t> for_host_;        // those of markov_rows_ that the host chooses
  std::vector<int64_t> measured_rows_;  // of logits
  std::vector<const float*> host_logits_;
  std::vector<float> sum_;  // [vocab]
  std::vector<float> confidence_;
  // Rows of logits on their way to the host; grows to the most that were wanted at once.
  Buffer host_rows_;
};

}  // namespace fathom::model
