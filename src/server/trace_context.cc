#include "server/trace_context.h"

#include <algorithm>
#include <cstdint>

#include "server/ids.h"

namespace fathom::server {
namespace {

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_zero(std::string_view text) {
  return text.find_first_not_of('0') == std::string_view::npos;
}

std::string new_span_id() {
  uint64_t bits = random_bits();
  if (bits == 0) bits = 1;  // zero is not an id
  std::string id(16, '0');
  for (char& digit : id) {
    digit = "0123456789abcdef"[bits & 15];
    bits >>= 4;
  }
  return id;
}

}  // namespace

std::optional<TraceContext> continue_trace(std::string_view traceparent) {
  constexpr size_t kLength = 55;  // of version 00
  if (traceparent.size() < kLength) return std::nullopt;
  const std::string_view version = traceparent.substr(0, 2);
  const std::string_view trace_id = traceparent.substr(3, 32);
  const std::string_view parent_id = traceparent.substr(36, 16);
  const std::string_view flags = traceparent.substr(53, 2);
  const bool dashes = traceparent[2] == '-' && traceparent[35] == '-' && traceparent[52] == '-';
  const bool ends = traceparent.size() == kLength || (version != "00" && traceparent[55] == '-');
  if (!dashes || !ends || version == "ff" || !is_hex(version) || !is_hex(trace_id) ||
      !is_hex(parent_id) || !is_hex(flags) || is_zero(trace_id) || is_zero(parent_id)) {
    return std::nullopt;
  }
  return TraceContext{std::string(trace_id), std::string(parent_id), std::string(flags),
                      new_span_id()};
}

}  // namespace fathom::server
