// What the server says about itself and its tokenizer: /v1/models, /tokenize, /detokenize,
// /version.
#pragma once

#include "server/router.h"
#include "server/services.h"

namespace fathom::server {

void add_model_routes(const Services& services, Router* router);

}  // namespace fathom::server
