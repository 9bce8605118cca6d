// The products of a prefill as an engine would do them with oneDNN, beside ours, one thread.
//
//   onednn_prefill [TOKENS] [RUNS]
//
// The matrices are those of four layers of the release's widths with 32 experts, as they lie in a
// file (fp4 and fp8 with a scale for each 32 columns); experts get the tokens of uniform routing.
// Ours is `linear` and `moe_experts`.  The peer has a pass of its own for each thing that ours do
// inside a product: rounding inputs, widening and packing weights, scaling sums, gathering rows of
// an expert, its activation, adding up experts.  In three forms:
//   u8 x s8   an fp8 weight as one plane and all columns with one scale: less than the model is
//   groups    a product for each 32 columns, so that each has its scale; products alone
//   bf16      weights with their scales are exact in bf16
// `packed`: as if weights lay in memory as the product wants them, 2 to 4 times as large.
//
// Linked only where oneDNN is installed (libdnnl-dev), and never part of the product.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "model/presets.h"
#include "model/tensor_list.h"
#include "peer/onednn_gemm.h"
#include "peer/our_products.h"

namespace fathom::peer {
namespace {

constexpr int32_t kLayers = 4, kExperts = 32;
constexpr int64_t kEngramRows = 4096;

struct Matrix {
  DType dtype;
  int64_t rows, cols;
  auto operator<=>(const Matrix&) const = default;
};

// Seconds of the best of `runs`, all kinds in turn.
struct Times {
  double ours = 1e9;
  double groups = 1e9;
  // The product alone; with passes on activations; with those on weights too.
  std::array<double, 2> gemm = {1e9, 1e9}, packed = {1e9, 1e9}, all = {1e9, 1e9};
};

constexpr std::array<GemmType, 2> kTypes = {GemmType::kU8S8, GemmType::kBf16};

// One matrix on rows of its own, by oneDNN and passes around it.
class PeerLinear {
 public:
  PeerLinear(const Matrix& m, int64_t tokens, GemmType type)
      : m_(m), tokens_(tokens), type_(type), gemm_(tokens, m.rows, m.cols, type) {
    rows_.resize(static_cast<size_t>(m.rows * m.cols * (type == GemmType::kBf16 ? 2 : 1)));
  }

  void run(const kernels::WeightMatrix& w, const Bf16* x, Bf16* y, bool is_packed) {
    round_inputs(x);
    if (!is_packed) {
      widen(w.data, w.scale);
      gemm_.pack(rows_.data());
    }
    gemm_.run();
    scale_sums(y);
  }
  void run_gemms() { gemm_.run(); }

 private:
  // To u8 with a scale a row, or to bf16 as e4m3 would be.
  void round_inputs(const Bf16* x) {
    scale_of_row_.resize(static_cast<size_t>(tokens_));
    for (int64_t t = 0; t < tokens_; ++t) {
      const Bf16* row = x + t * m_.cols;
      float most = 0;
      for (int64_t i = 0; i < m_.cols; ++i) most = std::max(most, std::abs(to_float(row[i])));
      const float scale = most / 127.0f, inverse = most > 0 ? 127.0f / most : 0;
      scale_of_row_[static_cast<size_t>(t)] = scale;
      if (type_ == GemmType::kU8S8) {
        uint8_t* out = static_cast<uint8_t*>(gemm_.x()) + t * m_.cols;
        for (int64_t i = 0; i < m_.cols; ++i) {
          out[i] = static_cast<uint8_t>(static_cast<int>(to_float(row[i]) * inverse + 128.5f));
        }
      } else {
        uint16_t* out = static_cast<uint16_t*>(gemm_.x()) + t * m_.cols;
        for (int64_t i = 0; i < m_.cols; ++i) out[i] = row[i].bits;
      }
    }
  }

  void widen(const uint8_t* w, const uint8_t* scales) {
    const bool fp4 = m_.dtype == DType::kI8;
    const int64_t bytes_a_row = fp4 ? m_.cols / 2 : m_.cols;
    for (int64_t r = 0; r < m_.rows; ++r) {
      const uint8_t* in = w + r * bytes_a_row;
      const uint8_t* scale = scales + (fp4 ? r : r / 32) * m_.cols / 32;
      if (type_ == GemmType::kU8S8) {
        auto* out = reinterpret_cast<int8_t*>(rows_.data()) + r * m_.cols;
        widen_row(in, fp4, [&](int64_t i, uint16_t code) { out[i] = int_of(code, fp4); });
      } else {
        auto* out = reinterpret_cast<uint16_t*>(rows_.data()) + r * m_.cols;
        widen_row(in, fp4, [&](int64_t i, uint16_t code) {
          out[i] = static_cast<uint16_t>(bf16_of(code, fp4) + ((scale[i / 32] - 127) << 7));
        });
      }
    }
  }
  template <class Fn>
  void widen_row(const uint8_t* in, bool fp4, Fn&& put) const {
    if (fp4) {
      for (int64_t i = 0; i < m_.cols; i += 2) {
        put(i, in[i / 2] & 15);
        put(i + 1, in[i / 2] >> 4);
      }
    } else {
      for (int64_t i = 0; i < m_.cols; ++i) put(i, in[i]);
    }
  }
  // Sign, exponent and mantissa moved to where the wider format has them; subnormals and zeros are
  // left to be wrong, which costs the peer nothing.
  static int8_t int_of(uint16_t code, bool fp4) {
    const int sign = fp4 ? code >> 3 : code >> 7;
    const int magnitude = fp4 ? code & 7 : code & 127;
    return static_cast<int8_t>((magnitude ^ -sign) + sign);
  }
  static uint16_t bf16_of(uint16_t code, bool fp4) {
    const int sign = fp4 ? code >> 3 : code >> 7;
    const int magnitude = fp4 ? ((code & 7) << 6) + (126 << 7) : ((code & 127) << 4) + (120 << 7);
    return static_cast<uint16_t>(sign << 15 | magnitude);
  }

  void scale_sums(Bf16* y) {
    if (type_ == GemmType::kBf16) {
      const auto* sums = static_cast<const uint16_t*>(gemm_.y());
      std::copy(sums, sums + tokens_ * m_.rows, reinterpret_cast<uint16_t*>(y));
      return;
    }
    const auto* sums = static_cast<const int32_t*>(gemm_.y());
    for (int64_t t = 0; t < tokens_; ++t) {
      const float scale = scale_of_row_[static_cast<size_t>(t)];
      for (int64_t r = 0; r < m_.rows; ++r) {
        y[t * m_.rows + r] = to_bf16(static_cast<float>(sums[t * m_.rows + r]) * scale);
      }
    }
  }

  Matrix m_;
  int64_t tokens_;
  GemmType type_;
  OneDnnGemm gemm_;
  std::vector<uint8_t> rows_;
  std::vector<float> scale_of_row_;
};

// Ours, a peer of each type and the product in groups, in turn.
template <class Ours, class Peer>
Times time_all(int runs, Ours& ours, std::array<Peer*, 2> peers,
               const std::function<void(Peer&, bool is_packed)>& run_peer,
               const std::function<void()>& run_groups) {
  Times best;
  const auto take = [](double& least, auto&& call) { least = std::min(least, seconds(call)); };
  for (int i = 0; i < runs; ++i) {
    take(best.ours, [&] { ours.run(); });
    for (size_t k = 0; k < 2; ++k) {
      take(best.all[k], [&] { run_peer(*peers[k], false); });
      take(best.packed[k], [&] { run_peer(*peers[k], true); });
      take(best.gemm[k], [&] { peers[k]->run_gemms(); });
    }
    if (i == 0) take(best.groups, run_groups);
  }
  return best;
}

Times time_linear(const Matrix& m, int64_t tokens, int runs, std::mt19937& random) {
  OurLinear ours(m.dtype, tokens, m.rows, m.cols, random);
  std::vector<Bf16> y(static_cast<size_t>(tokens * m.rows));
  PeerLinear by_int(m, tokens, kTypes[0]), by_bf16(m, tokens, kTypes[1]);
  OneDnnGemm groups(tokens, m.rows, m.cols, GemmType::kGroups);
  return time_all<OurLinear, PeerLinear>(
      runs, ours, {&by_int, &by_bf16},
      [&](PeerLinear& peer, bool is_packed) {
        peer.run(ours.weights(), ours.x(), y.data(), is_packed);
      },
      [&] { groups.run(); });
}

// One expert on rows that lie one behind the other.
class PeerExpert {
 public:
  PeerExpert(DType dtype, int64_t hidden, int64_t width, int64_t tokens, GemmType type)
      : up_({dtype, width, hidden}, tokens, type),
        down_({dtype, hidden, width}, tokens, type),
        g_(static_cast<size_t>(tokens * width)),
        a_(g_.size()) {}

  void run(const kernels::ExpertWeights& w, const Bf16* x, Bf16* y, bool is_packed) {
    up_.run(w.w1, x, g_.data(), is_packed);
    up_.run(w.w3, x, a_.data(), is_packed);
    for (size_t i = 0; i < g_.size(); ++i) {
      const float g = to_float(g_[i]);
      g_[i] = to_bf16(g / (1 + std::exp(-g)) * to_float(a_[i]));
    }
    down_.run(w.w2, g_.data(), y, is_packed);
  }
  void run_gemms() {
    up_.run_gemms();
    up_.run_gemms();
    down_.run_gemms();
  }

 private:
  PeerLinear up_, down_;
  std::vector<Bf16> g_, a_;
};

// All experts of a layer; each routed one gets as many tokens as uniform routing gives it.
class PeerExperts {
 public:
  PeerExperts(const model::ModelConfig& c, int64_t tokens, GemmType type)
      : hidden_(c.hidden_size),
        tokens_(tokens),
        num_routed_(c.num_experts),
        each_(tokens * c.num_experts_per_token / c.num_experts),
        routed_(DType::kI8, hidden_, c.moe_intermediate_size, each_, type),
        shared_(DType::kF8E4M3, hidden_, c.moe_intermediate_size, tokens, type),
        x_(static_cast<size_t>(each_ * hidden_)),
        e_(static_cast<size_t>(tokens * hidden_)),
        sums_(e_.size()) {}

  void run(const OurExperts& layer, Bf16* y, bool is_packed) {
    shared_.run(layer.shared(), layer.x(), e_.data(), is_packed);
    for (size_t i = 0; i < sums_.size(); ++i) sums_[i] = to_float(e_[i]);
    int64_t first = 0;
    for (const kernels::ExpertWeights& w : layer.routed()) {
      for (int64_t i = 0; i < each_; ++i) {
        std::copy_n(layer.x() + token(first + i) * hidden_, hidden_, x_.data() + i * hidden_);
      }
      routed_.run(w, x_.data(), e_.data(), is_packed);
      for (int64_t i = 0; i < each_; ++i) {
        float* sum = sums_.data() + token(first + i) * hidden_;
        const Bf16* e = e_.data() + i * hidden_;
        for (int64_t j = 0; j < hidden_; ++j) sum[j] += to_float(e[j]);
      }
      first += each_;
    }
    for (size_t i = 0; i < sums_.size(); ++i) y[i] = to_bf16(sums_[i]);
  }
  void run_gemms() {
    shared_.run_gemms();
    for (int64_t e = 0; e < num_routed_; ++e) routed_.run_gemms();
  }

 private:
  int64_t token(int64_t i) const { return i * 7 % tokens_; }

  int64_t hidden_, tokens_, num_routed_, each_;
  PeerExpert routed_, shared_;
  std::vector<Bf16> x_, e_;
  std::vector<float> sums_;
};

Times time_experts(const model::ModelConfig& c, int64_t tokens, int runs, std::mt19937& random) {
  OurExperts ours(c, tokens, random);
  std::vector<Bf16> y(static_cast<size_t>(tokens * c.hidden_size));
  PeerExperts by_int(c, tokens, kTypes[0]), by_bf16(c, tokens, kTypes[1]);
  const int64_t each = tokens * c.num_experts_per_token / c.num_experts;
  const int64_t hidden = c.hidden_size, width = c.moe_intermediate_size;
  OneDnnGemm up(each, width, hidden, GemmType::kGroups);
  OneDnnGemm down(each, hidden, width, GemmType::kGroups);
  OneDnnGemm shared_up(tokens, width, hidden, GemmType::kGroups);
  OneDnnGemm shared_down(tokens, hidden, width, GemmType::kGroups);
  return time_all<OurExperts, PeerExperts>(
      runs, ours, {&by_int, &by_bf16},
      [&](PeerExperts& peer, bool is_packed) { peer.run(ours, y.data(), is_packed); },
      [&] {
        for (int32_t e = 0; e < c.num_experts; ++e) {
          up.run();
          up.run();
          down.run();
        }
        shared_up.run();
        shared_up.run();
        shared_down.run();
      });
}

constexpr const char* kColumns[] = {"ours",   "u8 x s8", "packed", "all",
                                    "groups", "bf16",    "packed", "all"};

std::array<double, 8> columns(const Times& t) {
  return {t.ours, t.gemm[0], t.packed[0], t.all[0], t.groups, t.gemm[1], t.packed[1], t.all[1]};
}

int run(int64_t tokens, int runs) {
  const auto slice = model::release_slice(kLayers, kExperts, kEngramRows);
  if (!slice || tokens * slice->num_experts_per_token % kExperts != 0) {
    std::fprintf(stderr, "onednn_prefill: TOKENS is a multiple of 16\n");
    return 2;
  }
  std::map<Matrix, int> dense;
  for (const model::TensorSpec& t : model::expected_tensors(*slice)) {
    const bool is_product = t.part == model::TensorPart::kDense && t.dtype == DType::kF8E4M3 &&
                            t.name.find("shared_experts") == std::string::npos;
    if (is_product) ++dense[{t.dtype, t.shape[0], t.shape[1]}];
  }
  std::printf("products of a prefill of %d tokens, %d layers, ms of one thread\n%-26s",
              static_cast<int>(tokens), kLayers, "");
  for (const char* name : kColumns) std::printf(" %8s", name);
  std::printf("\n");
  std::array<double, 8> sums{};
  const auto print = [&](const std::string& name, int count, const Times& t) {
    std::printf("%2d x %-21s", count, name.c_str());
    const auto values = columns(t);
    for (size_t i = 0; i < values.size(); ++i) {
      sums[i] += count * values[i];
      std::printf(" %8.0f", 1e3 * count * values[i]);
    }
    std::printf("\n");
    std::fflush(stdout);
  };
  std::mt19937 random(1);
  for (const auto& [m, count] : dense) {
    print("fp8 " + std::to_string(m.rows) + " x " + std::to_string(m.cols), count,
          time_linear(m, tokens, runs, random));
  }
  print("experts", kLayers, time_experts(*slice, tokens, runs, random));
  std::printf("%-26s", "all");
  for (const double s : sums) std::printf(" %8.0f", 1e3 * s);
  std::printf("\n%-26s", "as many times as ours");
  for (const double s : sums) std::printf(" %8.2f", s / sums[0]);
  std::printf("\n");
  return 0;
}

}  // namespace
}  // namespace fathom::peer

int main(int argc, char** argv) {
  return fathom::peer::main_of_one_thread("onednn_prefill", argv, [&] {
    const int64_t tokens = argc > 1 ? std::atoi(argv[1]) : 512;
    const int runs = argc > 2 ? std::atoi(argv[2]) : 3;
    if (tokens < 1 || runs < 1) {
      std::fprintf(stderr, "onednn_prefill: TOKENS and RUNS are numbers from 1 on\n");
      return 2;
    }
    return fathom::peer::run(tokens, runs);
  });
}
