// /v1/completions: text that goes on from a prompt, without a conversation around it.
#pragma once

#include "server/router.h"
#include "server/services.h"

namespace fathom::server {

void add_completion_routes(const Services& services, Router* router);

}  // namespace fathom::server
