#include "model/state_image.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/check.h"
#include "kernels/formats.h"
#include "model/engram_hash.h"

namespace fathom::model {
namespace {

constexpr uint32_t kMagic = 0x49534846;  // "FHSI"
constexpr uint32_t kVersion = 3;

struct Header {
  uint32_t magic = kMagic, version = kVersion;
  int64_t position = 0, tail_start = 0, draft_floor = 0, bytes = 0;
  uint32_t decoder_windows = 0, num_layers = 0, hidden = 0, head_dim = 0, window = 0, copies = 0;
  uint32_t index_head_dim = 0, num_sources = 0;
  uint32_t num_draft_stages = 0, history = 0;
  friend bool operator==(const Header&, const Header&) = default;
};

Header make_header(const ModelConfig& c, int64_t position, int64_t tail_start, int64_t draft_floor,
                   bool decoder_windows) {
  Header h;
  h.position = position;
  h.tail_start = tail_start;
  h.draft_floor = draft_floor;
  h.decoder_windows = decoder_windows ? 1 : 0;
  h.num_layers = static_cast<uint32_t>(c.num_layers);
  h.hidden = static_cast<uint32_t>(c.hidden_size);
  h.head_dim = static_cast<uint32_t>(c.head_dim);
  h.window = static_cast<uint32_t>(c.sliding_window);
  h.copies = static_cast<uint32_t>(c.hc_mult);
  h.index_head_dim = static_cast<uint32_t>(c.index_head_dim);
  h.num_sources = static_cast<uint32_t>(c.kv_source_layers.size());
  h.num_draft_stages = static_cast<uint32_t>(c.num_draft_stages);
  h.history = static_cast<uint32_t>(c.engram_max_ngram_size > 1 ? c.engram_max_ngram_size - 1 : 0);
  return h;
}

// Copies of a stream, those that follow each other on both sides as one.
class JoinedCopies {
 public:
  explicit JoinedCopies(Stream& stream) : stream_(stream) {}
  void add(void* to, const void* from, int64_t bytes) {
    if (to != to_ + bytes_ || from != from_ + bytes_) {
      flush();
      to_ = static_cast<std::byte*>(to);
      from_ = static_cast<const std::byte*>(from);
    }
    bytes_ += bytes;
  }
  void flush() {
    stream_.copy(to_, from_, static_cast<size_t>(bytes_));
    bytes_ = 0;
  }

 private:
  Stream& stream_;
  std::byte* to_ = nullptr;
  const std::byte* from_ = nullptr;
  int64_t bytes_ = 0;
};

// Visits every piece of an image in order: fn(bytes of the piece in STATE or PAGES, size).
template <class Fn>
void for_each_piece(const ModelConfig& c, const StateLayout& sl, const KvLayout& kl,
                    std::byte* state, const std::byte* const* blocks, const Header& h, Fn fn) {
  const int64_t end = h.position, first = std::max<int64_t>(0, end - sl.window());
  const int32_t layers = h.decoder_windows != 0 ? c.num_layers : c.first_decoder_layer();
  for (int32_t l = 0; l < layers; ++l) {
    for (int64_t p = first; p < end; ++p) {
      fn(sl.ring(state, l) + p % sl.ring_size() * sl.window_row_bytes(), sl.window_row_bytes());
    }
  }
  for (int32_t s = 0; s < c.num_draft_stages; ++s) {
    for (int64_t p = h.draft_floor; p < end; ++p) {
      fn(sl.ring(state, c.num_layers + s) + p % sl.ring_size() * sl.window_row_bytes(),
         sl.window_row_bytes());
    }
  }
  for (const int32_t l : c.kv_source_layers) {
    const int64_t ratio = c.compress_ratios[static_cast<size_t>(l)];
    for (int64_t p = end / ratio * ratio; p < end; ++p) {
      const int64_t bytes = c.head_dim * int64_t{sizeof(float)};
      fn(sl.open_k(state, l, p), bytes);
      fn(sl.open_s(state, l, p), bytes);
    }
  }
  for (int64_t p = std::max<int64_t>(0, end - h.history); p < end; ++p) {
    fn(sl.engram_id(state, p), int64_t{sizeof(int32_t)});
  }
  for (int64_t p = first; p < end; ++p) {
    fn(sl.held_x(state, p), int64_t{c.hc_mult} * c.hidden_size * int64_t{sizeof(Bf16)});
    fn(sl.held_pre(state, p), c.hc_mult * int64_t{sizeof(float)});
    fn(sl.held_image(state, p), int64_t{1});
  }
  for (const int32_t l : c.kv_source_layers) {
    const int32_t ratio = c.compress_ratios[static_cast<size_t>(l)];
    for (const kernels::PagedRows& rows : {kl.kv_rows(l, blocks), kl.key_rows(l, blocks)}) {
      for (int64_t g = h.tail_start / ratio; g < end / ratio; ++g) {
        fn(const_cast<uint8_t*>(rows.row(g)), rows.row_bytes);
      }
    }
  }
}

// Bytes before the Engram ids, and of the whole image.  The positions of `h` are in range.
struct ImageSize {
  int64_t history_offset, bytes;
};

ImageSize image_size(const ModelConfig& c, const Header& h) {
  const int64_t rows = std::min<int64_t>(h.position, c.sliding_window);
  const int64_t layers = h.decoder_windows != 0 ? c.num_layers : c.first_decoder_layer();
  const int64_t draft_rows = c.num_draft_stages * (h.position - h.draft_floor);
  int64_t open = 0, tail = 0;
  for (const int32_t l : c.kv_source_layers) {
    const int64_t ratio = c.compress_ratios[static_cast<size_t>(l)];
    open += h.position % ratio * 2 * c.head_dim * int64_t{4};
    tail += (h.position / ratio - h.tail_start / ratio) *
            (kernels::row_bytes(kernels::RowFormat::kFp4Kv, c.head_dim) +
             kernels::row_bytes(kernels::RowFormat::kFp4Key, c.index_head_dim));
  }
  const int64_t held = int64_t{c.hc_mult} * (c.hidden_size * int64_t{2} + 4) + 1;
  const int64_t before =
      int64_t{sizeof(Header)} + open +
      (layers * rows + draft_rows) * kernels::row_bytes(kernels::RowFormat::kFp8, c.head_dim);
  return {before, before + std::min<int64_t>(h.position, h.history) * 4 + rows * held + tail};
}

bool tail_starts_at_a_group(const ModelConfig& c, const Header& h) {
  return std::all_of(c.kv_source_layers.begin(), c.kv_source_layers.end(), [&](int32_t l) {
    return h.tail_start % c.compress_ratios[static_cast<size_t>(l)] == 0;
  });
}

// They become addresses of table rows.
bool engram_ids_are_classes(const ModelConfig& c, const Header& h, const std::byte* ids) {
  if (c.engram_layers.empty()) return true;
  for (int64_t i = 0; i < std::min<int64_t>(h.position, h.history); ++i) {
    int32_t id = 0;
    std::memcpy(&id, ids + i * int64_t{sizeof id}, sizeof id);
    if (id < kDeadId || id >= c.engram_compressed_vocab_size) return false;
  }
  return true;
}

}  // namespace

std::vector<std::byte> save_state(const ModelConfig& config, const StateLayout& state_layout,
                                  const KvLayout& kv_layout, Stream& stream, std::byte* state,
                                  const std::byte* const* blocks, int64_t position,
                                  bool decoder_windows, int64_t draft_floor) {
  const int64_t tail_start = position / kv_layout.block_tokens() * kv_layout.block_tokens();
  const bool has_draft_rows = decoder_windows && config.num_draft_stages > 0;
  const int64_t first_draft =
      has_draft_rows ? std::max(draft_floor, position - state_layout.window()) : position;
  Header header = make_header(config, position, tail_start, first_draft, decoder_windows);
  header.bytes = int64_t{sizeof(Header)};
  for_each_piece(config, state_layout, kv_layout, state, blocks, header,
                 [&](const void*, int64_t n) { header.bytes += n; });
  std::vector<std::byte> image(static_cast<size_t>(header.bytes));
  std::memcpy(image.data(), &header, sizeof header);
  std::byte* at = image.data() + sizeof header;
  JoinedCopies copies(stream);
  for_each_piece(config, state_layout, kv_layout, state, blocks, header,
                 [&](const void* piece, int64_t n) {
                   copies.add(at, piece, n);
                   at += n;
                 });
  copies.flush();
  return image;
}

Result<StateImageInfo> inspect_state_image(const ModelConfig& config,
                                           std::span<const std::byte> image) {
  auto refuse = [](const char* why) {
    return Status(StatusCode::kDataLoss, std::string("not a usable STATE image: ") + why);
  };
  if (image.size() < sizeof(Header)) return refuse("too short for a header");
  Header h;
  std::memcpy(&h, image.data(), sizeof h);
  if (h.magic != kMagic) return refuse("it does not begin as one");
  if (h.version != kVersion) return refuse("another version wrote it");
  if (h.bytes != static_cast<int64_t>(image.size()))
    return refuse("its length differs from its header");
  Header want =
      make_header(config, h.position, h.tail_start, h.draft_floor, h.decoder_windows != 0);
  want.bytes = h.bytes;
  if (!(want == h)) return refuse("it belongs to a model of another shape");
  if (h.position < 0 || h.position > config.max_position_embeddings || h.tail_start < 0 ||
      h.tail_start > h.position || !tail_starts_at_a_group(config, h) ||
      h.draft_floor < std::max<int64_t>(0, h.position - config.sliding_window) ||
      h.draft_floor > h.position) {
    return refuse("bad positions");
  }
  const ImageSize size = image_size(config, h);
  if (size.bytes != h.bytes) return refuse("its length is not that of its rows");
  if (!engram_ids_are_classes(config, h, image.data() + size.history_offset)) {
    return refuse("an Engram class is out of range");
  }
  return StateImageInfo{h.position, h.decoder_windows != 0, h.tail_start, h.draft_floor};
}

void restore_state(const ModelConfig& config, const StateLayout& state_layout,
                   const KvLayout& kv_layout, Stream& stream, std::span<const std::byte> image,
                   std::byte* state, const std::byte* const* blocks) {
  Header header;
  FATHOM_CHECK(image.size() >= sizeof header);
  std::memcpy(&header, image.data(), sizeof header);
  const std::byte* at = image.data() + sizeof header;
  const std::byte* end = image.data() + image.size();
  JoinedCopies copies(stream);
  for_each_piece(config, state_layout, kv_layout, state, blocks, header,
                 [&](void* piece, int64_t n) {
                   FATHOM_CHECK(n <= end - at) << "image of another shape";
                   copies.add(piece, at, n);
                   at += n;
                 });
  copies.flush();
  FATHOM_CHECK(at == end) << "image of another shape";
}

}  // namespace fathom::model
