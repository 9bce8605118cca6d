// What an operator chooses about the server.  Loaded in apps/, printed by --print-config.
//
// Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codec/conversation.h"
#include "net/http_server.h"

namespace fathom::server {

struct ServerOptions {
  net::HttpServerOptions http;

  // Access.
  std::string cors_origin;          // "": other sites' pages are refused; "*": all may call
  int key_requests_per_minute = 0;  // a key; 0: no limit.  Both can be set for each key in the file
  int key_concurrency = 0;          // requests of a key at once; 0: no limit

  // Work.
  int codec_threads = 2;
  size_t codec_queue = 256;      // requests that wait for a codec thread; more get 429
  double request_timeout_s = 0;  // of one generation; 0: none
  int max_n = 16;                // samples of one request

  // Answers.
  bool default_thinking = true;
  bool client_sampling = false;  // temperature and top_p as asked for, also where the released
                                 // service would override them
  bool any_model_name = false;   // otherwise an unknown model is 404

  // Responses that previous_response_id can name.
  size_t stored_responses_bytes = size_t{64} << 20;
  int stored_responses_ttl_s = 24 * 3600;
};

}  // namespace fathom::server
