// What a request must be like before anybody works on it.
#pragma once

#include <cstdint>

#include "fathom/request.h"
#include "fathom/status.h"

namespace fathom::engine {

struct RequestLimits {
  int32_t vocab_size = 0;
  int32_t hidden_size = 0;  // of MediaSegment::embeddings; 0: they are refused
  int64_t max_context = 0;
  int32_t block_tokens = 0, num_blocks = 0;
};

// One sentence for each thing that a caller can do wrong.  kInvalidArgument: ids, ranges, media,
// longer than the context.  kResourceExhausted: needs more blocks than there are.
// kDeadlineExceeded: its time limit is over already.
Status check_request(const Request& request, const RequestLimits& limits);

// Tokens that the answer of a checked request can have.
int64_t max_new_tokens(const Request& request, const RequestLimits& limits);

}  // namespace fathom::engine
