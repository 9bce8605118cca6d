// Pages of 2 MiB instead of 4 KiB: who reads gigabytes a token then misses fewer translations, and
// fetches ahead across what were borders of pages.
#pragma once

#include <cstddef>
#include <span>

namespace fathom {

// Asks the kernel for huge pages where the range has whole ones, for what is not in memory yet.
// Where it gives none, nothing changes.  Not for mapped files: where the file system has large
// folios (ext4 from Linux 6.16 on) they came, and decoding was no faster for it
// (bench/results/README.md).
void prefer_huge_pages(std::span<const std::byte> range);

}  // namespace fathom
