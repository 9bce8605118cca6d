// A language model as a pure function of the token history: what every schedule must reproduce.
//
// Every row has a digest of all tokens up to it; what the decoder makes of it also depends on where
// its window begins, as in bounded replay. The next token is drawn from the last row's digest, the
// seed and the position.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "fathom/request.h"

namespace fathom::harness {

inline constexpr int32_t kFakeEos = 1;
inline constexpr int32_t kFakeVocab = 60;

inline uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15u ^ (b + 0x632be59bd9b4e019u);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Digest of the tokens up to one more.
inline uint64_t fake_row(uint64_t previous, int32_t token) {
  return mix(previous, static_cast<uint64_t>(token));
}
// Of a token inside an image.
inline uint64_t mix_media(uint64_t row, const MediaSegment& media) {
  return mix(row, 0x17a6e + uint64_t{media.digest[0]});
}
inline uint64_t fake_page(uint64_t row) { return mix(row, 0x9a9e); }
inline uint64_t fake_decoder_row(uint64_t row, int64_t floor) {
  return mix(row, 0xdec0de + static_cast<uint64_t>(floor));
}
// One in `eos_every` is the end token; never one of `forbidden`.
inline int32_t fake_token(uint64_t decoder_row, uint64_t seed, int64_t position, int eos_every,
                          std::span<const int32_t> forbidden = {}) {
  uint64_t h = mix(mix(decoder_row, seed), static_cast<uint64_t>(position));
  while (true) {
    const bool is_eos = h % static_cast<uint64_t>(eos_every) == 0;
    const auto token = is_eos ? kFakeEos : static_cast<int32_t>(2 + (h >> 32) % (kFakeVocab - 2));
    if (std::find(forbidden.begin(), forbidden.end(), token) == forbidden.end()) return token;
    h = mix(h, 0xf0);
  }
}
inline float fake_logprob(uint64_t decoder_row, int32_t token) {
  return -static_cast<float>(mix(decoder_row, static_cast<uint64_t>(token)) % 1000) / 100.0f;
}

// What follows `tokens`, whose first `num_prompt` are the prompt.
inline int32_t fake_next(std::span<const int32_t> tokens, int64_t num_prompt, bool exact,
                         int64_t window, uint64_t seed, int eos_every,
                         std::span<const int32_t> forbidden = {},
                         std::span<const MediaSegment> media = {}) {
  uint64_t row = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    row = fake_row(row, tokens[i]);
    const auto position = static_cast<int64_t>(i);
    for (const MediaSegment& m : media) {
      if (position >= m.position && position < m.position + m.num_tokens) row = mix_media(row, m);
    }
  }
  const int64_t floor = exact ? 0 : std::max<int64_t>(0, num_prompt - window);
  return fake_token(fake_decoder_row(row, floor), seed, static_cast<int64_t>(tokens.size()),
                    eos_every, forbidden);
}

}  // namespace fathom::harness
