// From the name a user gives to the folder of a checkpoint.
//
// Layout of the Hugging Face cache (huggingface_hub, "Understand caching"):
//   CACHE/models--ORG--NAME/refs/REVISION        text: a commit hash
//   CACHE/models--ORG--NAME/snapshots/HASH/...   the files, links to blobs
// Nothing is downloaded; an error names the command that does it.
#pragma once

#include <filesystem>
#include <string_view>

#include "fathom/status.h"

namespace fathom::weights {

// `model` is a folder, or "org/name" or "org/name@revision" (a branch, tag or commit; "main" by
// default). A folder wins.  `cache_root` is the folder that holds "models--..."; apps take it from
// the environment.
//   kInvalidArgument  neither a folder nor a well-formed id ("../x", control characters, a file)
//   kNotFound         no such folder, or the cache has no such model, revision or whole snapshot
Result<std::filesystem::path> resolve_model(std::string_view model,
                                            const std::filesystem::path& cache_root);

}  // namespace fathom::weights
