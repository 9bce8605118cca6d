// W3C trace context: which larger operation a request is a part of (www.w3.org/TR/trace-context).
//
// Thread: any.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fathom::server {

struct TraceContext {
  std::string trace_id;   // 32 lower-case hex digits
  std::string parent_id;  // 16: the caller's span
  std::string flags;      // 2
  std::string span_id;    // 16: ours, new for each request

  // What follows in our name: "00-TRACE-SPAN-FLAGS".
  std::string header() const { return "00-" + trace_id + "-" + span_id + "-" + flags; }
};

// Reads the header `traceparent`, of version 00 or a later one that begins like it; nullopt for
// anything else, which the standard says to ignore.
std::optional<TraceContext> continue_trace(std::string_view traceparent);

}  // namespace fathom::server
