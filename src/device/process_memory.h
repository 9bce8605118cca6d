// What this process has in memory, as the kernel counts it (Linux /proc).
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace fathom {

// The most memory that the process has had at once (VmHWM): its own and pages of mapped files,
// since it began or since reset_peak_memory().  nullopt where the kernel does not say.
std::optional<int64_t> peak_memory_bytes();

// Counts the peak from what is in memory now.  False where the kernel does not allow it: then the
// peak stays that of the whole process.
bool reset_peak_memory();

// Bytes of these ranges that this process has in memory: of a mapped file what was touched (and
// what the kernel maps around it), of anonymous memory what was written.  Costs 8 bytes of reading
// for each page of the ranges.  nullopt as above.
std::optional<int64_t> resident_bytes(std::span<const std::span<const std::byte>> ranges);

}  // namespace fathom
