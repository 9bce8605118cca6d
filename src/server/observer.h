// What the server tells whoever measures it (metrics, logs).
//
// Thread: functions are called on io, codec and event threads, several at once; none may block.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fathom/request.h"
#include "server/trace_context.h"

namespace fathom::server {

// One HTTP request that was answered, or whose client went away (status 499).
struct HttpRecord {
  std::string method = {};
  std::string path = {};   // as sent, without the query
  std::string route = {};  // the pattern that it matched; "" if none did
  int status = 0;
  std::string request_id = {};
  std::string key = {};  // name of the key; "" if the server is open
  std::string peer = {};
  std::optional<TraceContext> trace = {};  // if the client is a part of one
  double seconds = 0;
};

// One request to the engine, when it is over.
struct GenerationRecord {
  std::string request_id;
  std::string route;
  std::string key;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t completion_tokens = 0;  // of all samples
  int64_t longest_sample = 0;     // tokens of the one that has most
  int32_t max_tokens = 0;
  int32_t n = 1;
  FinishReason finish = FinishReason::kNone;  // of the last sample
  double prepare_s = 0;  // from the whole request to the engine: reading, rendering, encoding
  std::optional<double> queue_s = {};  // from there to the first step; none if there was none
  double ttft_s = 0;    // from the engine taking it to the first token; 0 if there was none
  double decode_s = 0;  // from the first token to the last
  double e2e_s = 0;     // from the engine taking it to the end
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void http_done(const HttpRecord&) {}
  virtual void generation_started() {}
  virtual void first_token(double /*ttft_s*/) {}
  virtual void next_token(double /*since_last_s*/) {}
  virtual void generation_done(const GenerationRecord&) {}
};

}  // namespace fathom::server
