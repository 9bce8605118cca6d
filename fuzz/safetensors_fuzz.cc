// Any bytes as a safetensors file and as an index: an error or a list whose tensors lie in the
// file.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/check.h"
#include "weights/safetensors.h"
#include "weights/shard_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom::weights;
  const auto tensors = parse_safetensors(std::as_bytes(std::span(data, size)), "input");
  if (tensors) {
    int64_t end = 0;
    for (const SafetensorsEntry& t : *tensors) {
      const int64_t bytes = t.shape.num_elements() * fathom::dtype_bytes(t.dtype);
      FATHOM_CHECK(bytes >= 0 && t.offset >= end) << t.name;
      end = t.offset + bytes;
    }
    FATHOM_CHECK(end <= static_cast<int64_t>(size)) << end;
  } else {
    FATHOM_CHECK(!tensors.error().message().empty());
  }
  const auto index = parse_shard_index({reinterpret_cast<const char*>(data), size}, "input");
  if (index) {
    for (const auto& shard : index->shards) {
      FATHOM_CHECK(shard.find('/') == shard.npos && shard != "..") << shard;
    }
  }
  return 0;
}
