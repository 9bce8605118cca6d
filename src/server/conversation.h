// The endpoints of conversations: /v1/chat/completions, /v1/responses, /v1/messages and
// /v1/messages/count_tokens.
#pragma once

#include "codec/request.h"
#include "server/exchange.h"
#include "server/router.h"
#include "server/services.h"

namespace fathom::server {

// `services` outlives the router.
void add_conversation_routes(const Services& services, Router* router);

}  // namespace fathom::server
