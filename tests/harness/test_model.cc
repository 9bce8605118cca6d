#include "harness/test_model.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "model/class_map.h"
#include "model/presets.h"
#include "model/state_image.h"
#include "model/synthetic.h"

namespace fathom::test {
namespace {

template <class T>
T must(Result<T> result) {
  FATHOM_CHECK(result.has_value()) << result.error().to_string();
  return *std::move(result);
}

}  // namespace

TestModel::TestModel(const TestModelOptions& options)
    : device_(options.device != nullptr ? *options.device : cpu_device()),
      stream_(must(device_.make_stream(options.num_threads))) {}

TestModel TestModel::open(const std::filesystem::path& dir, const TestModelOptions& options) {
  TestModel m(options);
  m.checkpoint_ = std::make_unique<weights::Checkpoint>(must(weights::Checkpoint::open(dir)));
  model::ModelConfig config = must(model::load_config(dir));
  std::vector<int32_t> class_map = must(model::load_class_map(dir, config));
  m.create(std::move(config), std::move(class_map), options);
  return m;
}

TestModel::TestModel(const std::string& preset, const TestModelOptions& options)
    : TestModel(options) {
  model::ModelConfig config = must(model::preset_config(preset));
  checkpoint_ = std::make_unique<weights::Checkpoint>(
      must(model::make_synthetic(config, model::SyntheticKind::kOracle, 0)));
  std::vector<int32_t> class_map = model::modulo_class_map(config);
  create(std::move(config), std::move(class_map), options);
}

void TestModel::create(model::ModelConfig config, std::vector<int32_t> class_map,
                       const TestModelOptions& options) {
  model_ = must(model::Model::create(std::move(config), *checkpoint_, std::move(class_map),
                                     kernels::Ops(device_.kind(), options.isa, options.numerics),
                                     options.block_tokens, *stream_, device_, options.placement));
}

TestSequence::TestSequence(TestModel& model)
    : model_(model), state_(static_cast<size_t>(model.model().state_layout().bytes())) {
  // Whatever was in the slot before must not matter.
  std::fill(state_.begin(), state_.end(), std::byte{0x7f});
  // Segments point into the table, so it must not move.
  block_table_.reserve(4096);
}

model::Segment TestSequence::segment(std::span<const int32_t> ids, const StepOptions& options) {
  const int64_t end = position_ + static_cast<int64_t>(ids.size());
  reserve(end);
  model::Segment s;
  s.state = state_.data();
  s.blocks = block_table_.data();
  s.start = position_;
  s.num_rows = static_cast<int32_t>(ids.size());
  s.ids = ids;
  s.is_image = options.is_image;
  s.embeddings = options.embeddings;
  s.num_logits = options.num_logits;
  s.pages_from = pages_from_;
  s.window_floor = options.window_floor;
  if (options.replay) {
    const int64_t rows =
        options.replay_rows > 0 ? options.replay_rows : model_.config().sliding_window;
    s.decoder_start = options.prompt_tokens;
    s.decoder_floor = std::max<int64_t>(0, options.prompt_tokens - rows);
  }
  position_ = end;
  if (options.drafts) draft_rows_.add(s);
  return s;
}

void TestSequence::reserve(int64_t end) {
  const model::KvLayout& layout = model_.model().kv_layout();
  while (static_cast<int64_t>(blocks_.size()) * layout.block_tokens() < end) {
    blocks_.push_back(std::make_unique<std::byte[]>(static_cast<size_t>(layout.block_bytes())));
    block_table_.push_back(blocks_.back().get());
  }
}

std::vector<std::byte> TestSequence::save(bool decoder_windows) {
  const model::Model& m = model_.model();
  std::vector<std::byte> image = model::save_state(
      m.config(), m.state_layout(), m.kv_layout(), m.stream(), state_.data(), block_table_.data(),
      position_, decoder_windows, draft_rows_.floor(position_));
  FATHOM_CHECK(m.stream().synchronize().ok());
  return image;
}

void TestSequence::resume(std::span<const std::byte> image, const TestSequence& pages_of,
                          int64_t cached) {
  const model::Model& m = model_.model();
  const model::StateImageInfo info = must(model::inspect_state_image(m.config(), image));
  reserve(std::max(cached, info.position));
  const int64_t per_block = m.kv_layout().block_tokens();
  FATHOM_CHECK(cached % per_block == 0) << cached;
  for (int64_t b = 0; b < cached / per_block; ++b) {
    std::copy_n(pages_of.blocks_[static_cast<size_t>(b)].get(), m.kv_layout().block_bytes(),
                blocks_[static_cast<size_t>(b)].get());
  }
  model::restore_state(m.config(), m.state_layout(), m.kv_layout(), m.stream(), image,
                       state_.data(), block_table_.data());
  FATHOM_CHECK(m.stream().synchronize().ok());
  position_ = info.position;
  draft_rows_ = {info.draft_floor, info.position};
  pages_from_ = std::max(cached, info.position);
}

std::vector<float> TestSequence::step(std::span<const int32_t> ids, const StepOptions& options) {
  return forward(model_, {segment(ids, options)}, options.probe, options.drafts);
}

std::vector<std::byte> TestSequence::pages() const {
  std::vector<std::byte> all;
  for (const auto& block : blocks_) {
    all.insert(all.end(), block.get(), block.get() + model_.model().kv_layout().block_bytes());
  }
  return all;
}

bool TestSequence::equal_pages(const TestSequence& other) const {
  const model::KvLayout& layout = model_.model().kv_layout();
  const std::byte* const* tables[2] = {block_table_.data(), other.block_table_.data()};
  for (const int32_t l : model_.config().kv_source_layers) {
    const int64_t num_rows = position_ / model_.config().compress_ratios[static_cast<size_t>(l)];
    for (const bool keys : {false, true}) {
      kernels::PagedRows rows[2];
      for (const int i : {0, 1}) {
        rows[i] = keys ? layout.key_rows(l, tables[i]) : layout.kv_rows(l, tables[i]);
      }
      for (int64_t g = 0; g < num_rows; ++g) {
        const auto bytes = static_cast<size_t>(rows[0].row_bytes);
        if (std::memcmp(rows[0].row(g), rows[1].row(g), bytes) != 0) return false;
      }
    }
  }
  return position_ == other.position_;
}

std::vector<float> forward(TestModel& model, std::vector<model::Segment> segments,
                           model::LayerProbe* probe, bool keep_draft_rows) {
  const model::Batch batch{std::move(segments), keep_draft_rows};
  std::vector<float> logits(static_cast<size_t>(model::Model::num_logit_rows(batch)) *
                            static_cast<size_t>(model.config().vocab_size));
  const Status status = model.model().forward(batch, logits, probe);
  FATHOM_CHECK(status.ok()) << status.to_string();
  return logits;
}

std::vector<model::Draft> draft_greedily(TestModel& model,
                                         std::vector<model::DraftSegment> segments,
                                         bool sees_logits) {
  class Greedy : public model::DraftSampler {
   public:
    explicit Greedy(bool sees_logits) : sees_logits_(sees_logits) {}
    int32_t choose(size_t, int32_t, std::span<const float> logits) override {
      return argmax(logits);
    }
    bool draws_ahead() const override { return !sees_logits_; }
    bool draw(size_t, int32_t, model::RowDraws& draws) override {
      if (!sees_logits_) draws.rows.emplace_back();
      return !sees_logits_;
    }

   private:
    bool sees_logits_;
  } greedy(sees_logits);
  std::vector<model::Draft> drafts(segments.size());
  const Status status = model.model().draft(segments, greedy, drafts);
  FATHOM_CHECK(status.ok()) << status.to_string();
  return drafts;
}

int32_t argmax(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace fathom::test
