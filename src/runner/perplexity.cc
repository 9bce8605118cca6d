#include "runner/perplexity.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kvtier/paged_storage.h"
#include "runner/sequence.h"

namespace fathom::runner {
namespace {

double negative_log_p(std::span<const float> logits, int32_t id) {
  const double best = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - best);
  return best + std::log(sum) - static_cast<double>(logits[static_cast<size_t>(id)]);
}

// One piece: `ids` begins with BOS.
Status add_piece(model::Model& model, kvtier::PagedStorage& storage, std::span<const int32_t> ids,
                 int32_t chunk_tokens, const std::function<bool(int64_t)>& keep_going,
                 TextLoss* loss) {
  const auto length = static_cast<int64_t>(ids.size());
  const auto sequence =
      Sequence::create(model, storage, ids, PrefillMode::kExact, /*max_tokens=*/length);
  const auto vocab = static_cast<size_t>(model.config().vocab_size);
  std::vector<float> logits;
  // The last token is only predicted.
  while (sequence->num_computed() < length - 1) {
    const int64_t start = sequence->num_computed();
    const auto rows = static_cast<int32_t>(std::min<int64_t>(chunk_tokens, length - 1 - start));
    model::Batch batch;
    batch.segments.push_back(sequence->next_segment(rows, rows));
    logits.resize(static_cast<size_t>(rows) * vocab);
    FATHOM_TRY(model.forward(batch, logits));
    sequence->advance(rows);
    for (int32_t row = 0; row < rows; ++row) {
      const int32_t next = ids[static_cast<size_t>(start + row + 1)];
      loss->sum +=
          negative_log_p(std::span(logits).subspan(static_cast<size_t>(row) * vocab, vocab), next);
    }
    loss->num_tokens += rows;
    if (!std::isfinite(loss->sum)) {
      return Status(StatusCode::kInternal, "the model's logits are not finite within tokens " +
                                               std::to_string(loss->num_tokens - rows) + " to " +
                                               std::to_string(loss->num_tokens) + " of the text");
    }
    if (!keep_going(loss->num_tokens)) return Status(StatusCode::kCancelled, "interrupted");
  }
  return Status();
}

}  // namespace

Result<TextLoss> text_loss(model::Model& model, std::span<const int32_t> ids, int32_t chunk_tokens,
                           const std::function<bool(int64_t)>& keep_going) {
  const model::ModelConfig& c = model.config();
  for (const int32_t id : ids) {
    if (id < 0 || id >= c.vocab_size) {
      return Status(StatusCode::kInvalidArgument, "token id " + std::to_string(id) +
                                                      " is not in the vocabulary of " +
                                                      std::to_string(c.vocab_size));
    }
  }
  constexpr int64_t kLogitBytes = int64_t{64} << 20;
  const int64_t rows_of_logits = std::max<int64_t>(1, kLogitBytes / (4 * c.vocab_size));
  const auto chunk = static_cast<int32_t>(std::min<int64_t>(chunk_tokens, rows_of_logits));
  const auto piece_tokens = static_cast<size_t>(c.max_position_embeddings - 1);
  const auto longest = static_cast<int64_t>(std::min(ids.size(), piece_tokens)) + 1;
  FATHOM_ASSIGN(const auto storage,
                kvtier::PagedStorage::create(model.kv_layout().block_bytes(),
                                             Sequence::blocks_for(model, longest), model.device()));
  TextLoss loss;
  std::vector<int32_t> piece;
  for (size_t begin = 0; begin < ids.size(); begin += piece_tokens) {
    const auto part = ids.subspan(begin, std::min(piece_tokens, ids.size() - begin));
    piece.assign(1, c.bos_token_id);
    piece.insert(piece.end(), part.begin(), part.end());
    FATHOM_TRY(add_piece(model, *storage, piece, chunk, keep_going, &loss));
  }
  return loss;
}

}  // namespace fathom::runner
