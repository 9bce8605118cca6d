// What the handlers of the API work with.
//
// Borrowed: all of it outlives the handlers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codec/conversation.h"
#include "codec/prompt.h"
#include "codec/tokenizer.h"
#include "fathom/engine.h"
#include "server/generations.h"
#include "server/options.h"
#include "server/response_store.h"
#include "server/work_pool.h"

namespace fathom::server {

// The model behind the API.
struct ServedModel {
  std::vector<std::string> names;  // at least one; the first is its own
  const codec::Tokenizer* tokenizer = nullptr;
  int64_t context_tokens = 0;  // prompt and answer
  codec::ModelVersion version = codec::ModelVersion::kV41Flash;
  std::string fingerprint;  // of the weights and the program
  int64_t created = 0;      // Unix seconds
  std::string program_version;
  // Checks the images of a prompt and puts them into the request, whose ids are there; called on
  // codec threads.  None: images are refused.
  std::function<Status(const codec::Prompt&, Request*)> add_images = {};
  // Compiles a constraint, so that a later Engine::submit finds it done; on a codec thread.
  std::function<Status(const Constraint&)> compile = {};
};

struct Services {
  const ServerOptions& options;
  const ServedModel& model;
  Generations& generations;
  ResponseStore& responses;
  WorkPool& codec;

  // The name under which a request knows the model: its own, if that is served.  kNotFound says
  // which are.
  Result<std::string> model_name(const codec::JsonValue& body) const;
};

}  // namespace fathom::server
