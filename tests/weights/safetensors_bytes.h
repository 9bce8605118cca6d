// safetensors files made by hand, right and wrong ones.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace fathom::weights {

// Length bytes, this header, `data_bytes` bytes of data.
inline std::string safetensors_file(std::string_view header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  file += header;
  for (size_t i = 0; i < data_bytes; ++i) file += static_cast<char>(i);
  return file;
}

// One F8_E4M3 tensor of `bytes` bytes.
inline std::string one_tensor_file(std::string_view name, size_t bytes) {
  const std::string n = std::to_string(bytes);
  return safetensors_file("{\"" + std::string(name) + "\":{\"dtype\":\"F8_E4M3\",\"shape\":[" + n +
                              "],\"data_offsets\":[0," + n + "]}}",
                          bytes);
}

}  // namespace fathom::weights
