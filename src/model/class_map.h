// The Engram class of every token id (spec: docs/spec/model.md 7.1): ids whose texts differ only in
// case, accents or spacing share a class, and n-grams of classes are hashed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "fathom/status.h"
#include "model/config.h"

namespace fathom::model {

inline constexpr std::string_view kClassMapFileName = "engram_map.bin";
// Entry of the index's metadata by which our generator says that a checkpoint without a tokenizer
// uses id mod engram_compressed_vocab_size.
inline constexpr std::string_view kClassMapKey = "engram_class_map";
inline constexpr std::string_view kModuloClassMap = "modulo";

// [vocab_size] class of each id: id mod engram_compressed_vocab_size.  For made-up weights.
std::vector<int32_t> modulo_class_map(const ModelConfig& config);

// [vocab_size] class of each id for the checkpoint in `dir`; empty if the model has no Engram
// layer. engram_map.bin (vocab_size x u32, little-endian) if there is one: its size and its
// numbering (classes count up in the order of first appearance, to exactly
// engram_compressed_vocab_size) are checked. Else the modulo map if the generator made the
// checkpoint, else an error.
Result<std::vector<int32_t>> load_class_map(const std::filesystem::path& dir,
                                            const ModelConfig& config);

}  // namespace fathom::model
