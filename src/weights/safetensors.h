// The safetensors container: 8 bytes of header length (little-endian), a JSON header, the data.
// Format: https://github.com/huggingface/safetensors, "Format".
//
// A reader must not trust any of it.  As the format's own library does, we want the tensors' bytes
// to cover the data without holes or overlaps, from its first byte to its last; so a file that is
// shorter than its header says (a download that stopped) or longer is damaged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fathom/status.h"
#include "tensor/tensor_view.h"

namespace fathom::weights {

// The longest header that the format allows.
inline constexpr int64_t kSafetensorsHeaderBytesMax = 100'000'000;

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  int64_t offset = 0;  // of its first byte, from the start of the file
};

// Checks `file`, the bytes of a whole file, and lists its tensors by offset.  Touches the header
// only. `where` names the file in errors.  Types other than those of DType and tensors of more than
// three dimensions are refused (kFailedPrecondition); damage is kDataLoss.
Result<std::vector<SafetensorsEntry>> parse_safetensors(std::span<const std::byte> file,
                                                        std::string_view where);

// The header with its 8 length bytes and padding, for tensors whose data follow in this order.
// Offsets of the entries are ignored and made anew.
std::string make_safetensors_header(std::span<const SafetensorsEntry> tensors);

}  // namespace fathom::weights
