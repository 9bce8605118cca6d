// Decode steps at long contexts, loading, and experts in host memory: a model of the release's
// widths, by the clock of the host.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <set>

#include "cuda/gpu_bench.h"
#include "model/model.h"
#include "model/presets.h"
#include "model/summary.h"
#include "model/synthetic.h"

namespace fathom::gpu_bench {
namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Different experts that a pass picks, over all layers.
class CountPicks : public fathom::model::LayerProbe {
 public:
  void before_layer(int32_t, const Rows&) override {}
  void after_layer(int32_t, const Rows&) override {}
  void chosen(int32_t, std::span<const int32_t>, std::span<const int32_t>, int64_t) override {}
  void routed(int32_t, std::span<const int32_t> experts) override {
    num += static_cast<int64_t>(std::set<int32_t>(experts.begin(), experts.end()).size());
  }
  int64_t num = 0;
};

}  // namespace

// Sequences of a made-up past: what one prompt of 1,024 tokens left, again and again.
class StepBench {
 public:
  StepBench(Device& device, Stream& stream, fathom::model::Model& model)
      : device_(device), stream_(stream), model_(model) {
    for (size_t i = 0; i < ids_.size(); ++i) ids_[i] = static_cast<int32_t>(i * 7919 % 100000);
  }

  void give_context(int64_t batch, int64_t context) {
    const int64_t block_bytes = model_.kv_layout().block_bytes();
    const int64_t block_tokens = model_.kv_layout().block_tokens();
    const auto state_bytes = static_cast<size_t>(model_.state_layout().bytes());
    constexpr int64_t kPast = 1024, kPromptMost = 2048;
    sequences_.clear();
    sequences_.resize(static_cast<size_t>(batch));
    for (Sequence& s : sequences_) {
      // Room for a prompt behind it.
      const int64_t blocks = (std::max(context, kPast) + kPromptMost) / block_tokens + 2;
      s.state = must(device_.allocate(model_.state_layout().bytes()));
      s.pages = must(device_.allocate(blocks * block_bytes));
      for (int64_t b = 0; b < blocks; ++b) s.blocks.push_back(s.pages.data() + b * block_bytes);
      if (&s != sequences_.data()) {
        stream_.copy(s.state.data(), sequences_[0].state.data(), state_bytes);
        stream_.copy(s.pages.data(), sequences_[0].pages.data(),
                     static_cast<size_t>(blocks * block_bytes));
        s.position = context;
        continue;
      }
      (void)pass(0, 1, kPast, 0, false);
      for (int64_t b = kPast / block_tokens; b < blocks; ++b) {
        stream_.copy(s.pages.data() + b * block_bytes,
                     s.pages.data() + b % (kPast / block_tokens) * block_bytes,
                     static_cast<size_t>(block_bytes));
      }
      s.position = context;
    }
    const Status status = stream_.synchronize();
    if (!status.ok()) fail(status);
  }

  // Seconds of a forward of `rows` tokens of the sequences [first, first + batch).
  double pass(size_t first, int64_t batch, int64_t rows, int32_t num_logits, bool advances,
              fathom::model::LayerProbe* probe = nullptr) {
    fathom::model::Batch b;
    for (int64_t i = 0; i < batch; ++i) {
      Sequence& s = sequences_[first + static_cast<size_t>(i)];
      fathom::model::Segment segment;
      segment.state = s.state.data();
      segment.blocks = s.blocks.data();
      segment.start = s.position;
      segment.num_rows = static_cast<int32_t>(rows);
      segment.ids = std::span<const int32_t>(ids_).subspan(static_cast<size_t>(i) * 8,
                                                           static_cast<size_t>(rows));
      segment.num_logits = probe == nullptr ? num_logits : 0;
      b.segments.push_back(segment);
      if (advances) s.position += rows;
    }
    draws_.rows.assign(static_cast<size_t>(batch), {});  // greedy
    tokens_.resize(static_cast<size_t>(batch));
    rows_.resize(static_cast<size_t>(batch));
    std::iota(rows_.begin(), rows_.end(), 0);
    const double begin = now_s();
    Status status;
    if (probe != nullptr || num_logits == 0) {
      status = model_.forward(b, {}, probe);
    } else {
      model_.forward_kept(b);
      status = model_.take(draws_, rows_, tokens_, {}, {});
    }
    if (!status.ok()) fail(status);
    return now_s() - begin;
  }

  // Of nine passes, or of three if they are slow.
  double median(int64_t batch, int64_t rows, int32_t num_logits, bool advances) {
    std::vector<double> times;
    double last = 0;
    for (int i = 0; i < (last < 0.2 ? 4 : 2); ++i)
      last = pass(0, batch, rows, num_logits, advances);
    for (int i = 0; i < (last < 0.2 ? 9 : 3); ++i)
      times.push_back(pass(0, batch, rows, num_logits, advances));
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

  int64_t count_picks(int64_t batch, int64_t rows) {
    CountPicks picks;
    (void)pass(0, batch, rows, 0, false, &picks);
    return picks.num;
  }

 private:
  struct Sequence {
    Buffer state, pages;
    std::vector<const std::byte*> blocks;
    int64_t position = 0;
  };
  Device& device_;
  Stream& stream_;
  fathom::model::Model& model_;
  std::vector<Sequence> sequences_;
  std::vector<int32_t> ids_ = std::vector<int32_t>(4096);
  fathom::model::RowDraws draws_;
  std::vector<int64_t> rows_;
  std::vector<int32_t> tokens_;
};

void Bench::steps(int32_t layers, int32_t num_experts, bool host_experts) {
  const double link = measure_link_rate(handle_) / 1e9;
  const fathom::model::ModelConfig config =
      must(fathom::model::release_slice(layers, num_experts, 65536));
  const auto checkpoint =
      must(fathom::model::make_synthetic(config, fathom::model::SyntheticKind::kRandom, 1));
  const auto model = place(config, checkpoint, host_experts, "memory");
  StepBench bench(device_, *stream_, *model);
  if (host_experts) {
    std::printf(
        "\n| pass, experts in host memory | rows | experts fetched | time ms | floor ms (link) | "
        "floor / time | link GB/s in the whole step |\n|---|---|---|---|---|---|---|\n");
    const auto record = static_cast<double>(fathom::model::expert_record_bytes(config));
    const auto print = [&](const char* name, int64_t batch, int64_t rows, int32_t num_logits) {
      const double seconds = bench.median(batch, rows, num_logits, num_logits > 0);
      const auto fetched = static_cast<double>(bench.count_picks(batch, rows));
      const double floor = fetched * record / 1e9 / link;
      std::printf("| %s | %lld | %.0f | %.2f | %.2f | %.2f | %.1f |\n", name,
                  static_cast<long long>(batch * rows), fetched, seconds * 1e3, floor * 1e3,
                  floor / seconds, fetched * record / 1e9 / seconds);
      std::fflush(stdout);
    };
    for (const int64_t batch : {1, 8, 64}) {
      bench.give_context(batch, 1024);
      print("decode, context 1K, with head", batch, 1, 1);
    }
    bench.give_context(1, 1024);
    for (const int64_t rows : {512, 2048}) print("prefill, exact, no head", 1, rows, 0);
    return;
  }
  std::printf(
      "\n| decode, with head, as a graph | rows | context | time ms | floor ms | floor / time |\n"
      "|---|---|---|---|---|---|\n");
  for (const int64_t batch : {1, 8}) {
    for (const int64_t context :
         {int64_t{1} << 10, int64_t{1} << 12, int64_t{1} << 17, (int64_t{1} << 20) - 64}) {
      bench.give_context(batch, context);
      const double seconds = bench.median(batch, 1, 1, true);
      const fathom::model::DecodeBytes one = fathom::model::decode_bytes(config, context);
      const auto record = static_cast<double>(fathom::model::expert_record_bytes(config));
      const double floor_bytes =
          static_cast<double>(one.dense + one.head) +
          record * static_cast<double>(bench.count_picks(batch, 1)) +
          static_cast<double>(batch * (one.engram_rows + one.kv_rows + one.index_keys));
      const double floor = floor_bytes / read_rate_;
      std::printf("| %d layers | %lld | %lld | %.2f | %.2f | %.2f |\n", layers,
                  static_cast<long long>(batch), static_cast<long long>(context), seconds * 1e3,
                  floor * 1e3, floor / seconds);
      std::fflush(stdout);
    }
  }
}

}  // namespace fathom::gpu_bench
