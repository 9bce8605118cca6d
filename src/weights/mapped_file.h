// A whole file mapped read-only into memory.
//
// Pages are read from disk when first touched and dropped by the system when memory is short.  A
// file that another process truncates while it is mapped ends this process (SIGBUS): do not edit a
// checkpoint that is in use.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "fathom/status.h"

namespace fathom::weights {

class MappedFile {
 public:
  // kNotFound if there is no such file, kDataLoss if it is empty, kInvalidArgument if it is no
  // file.
  static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  // Valid as long as this object.
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  MappedFile(const std::byte* data, size_t size) : data_(data), size_(size) {}

  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace fathom::weights
