// Reads files of vectors in all their forms into one form.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "codec/json_value.h"
#include "fathom/status.h"

namespace fathom::check_vectors {

// One vector: the fields as in the v020 files (name, op, inputs), and what is expected.
struct Vector {
  std::string name;
  std::string op;
  codec::JsonObject fields;
  bool ok = true;
  codec::JsonValue result;   // if ok
  std::string error_kind;    // if not
  std::string error_detail;  // if not
  std::string fault;         // a kind of fault of the package: its value is not what is needed
};

// `corpus.jsonl` is paired with the goldens.jsonl beside it, a file of tokenizer vectors gets its
// ops from `kind`, a .json file is a list of derived vectors by area.  Error: not such a file.
Result<std::vector<Vector>> read_vectors(const std::filesystem::path& file);

}  // namespace fathom::check_vectors
