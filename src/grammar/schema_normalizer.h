// The work behind normalize_schema.  Private to schema*.cc.
//
// Two steps for every node: expand() makes one plain schema of it (references beside other
// keywords, allOf, anyOf and oneOf are worked out; a reference alone stays, for recursion), then
// emit_*() writes what the compiler understands.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "grammar/regex.h"
#include "grammar/schema.h"
#include "grammar/schema_merge.h"

namespace fathom::grammar {

class SchemaNormalizer {
 public:
  SchemaNormalizer(const Json& root, SchemaUse use) : root_(root), use_(use) {}
  Result<Json> run();

 private:
  // nullopt: no value fulfils it.
  using Emitted = Result<std::optional<Json>>;
  struct Place {
    std::string path;
    int depth;
    // Of parameters in DSML, whose strings stand raw: the object itself is 0, its members 1.
    int level;
    Place in(const std::string& step, bool deeper = true) const {
      // Paths are for messages; one that grows with a hostile schema would cost time.
      return {path.size() < 300 ? path + '/' + step.substr(0, 80) : path, depth + 1,
              level + (deeper ? 1 : 0)};
    }
  };

  // schema_expand.cc
  Emitted node(const Json& schema, const Place& at);
  Emitted conjunction(std::vector<Json> parts, const Place& at);
  Emitted alternatives(const Json& options, bool exclusive, std::vector<Json> rest,
                       const Place& at);
  Result<Json> require_difference(const Json& options, size_t i, size_t j, const Json& a,
                                  const Json* type, const std::string& where);
  Result<const Json*> resolve(const std::string& reference, const std::string& where) const;
  Result<Json> resolved(const Json& schema, const std::string& where) const;
  Emitted reference(const std::string& pointer, const Place& at);
  Status spend(const Json& copied, const std::string& where);
  // States that the compiled grammar will have, roughly.
  Status spend_states(int64_t count, const std::string& where);

  // schema_emit.cc
  Emitted plain(const Json& schema, const Place& at);
  Emitted values(const Json& schema, const Place& at);
  Emitted typed(const Json& schema, const std::string& type, const Place& at);
  Emitted number(const Json& schema, bool whole, const Place& at);
  Emitted whole_number(const Json& schema, const Place& at);
  Emitted string(const Json& schema, const Place& at);
  Emitted pattern(const std::string& text, int64_t min, int64_t max, const Place& at);
  Result<bool> value_fits(const Json& value, const Json& schema, const std::string& where) const;
  Result<int64_t> count(const Json& schema, const char* keyword, int64_t missing,
                        const std::string& where) const;

  // schema_emit_containers.cc
  Emitted array(const Json& schema, const Place& at);
  Emitted object(const Json& schema, const Place& at);
  Emitted patterned_object(const Json& schema, Json out, const Place& at);
  Status check_property_counts(const Json& schema, const Json& properties, const Json& required,
                               bool open, Json* out, const Place& at);

  const Json& root_;
  const SchemaUse use_;
  std::map<std::string, std::string> names_;  // of definitions, by pointer
  std::map<std::string, Json> definitions_;   // by name
  std::map<std::string, bool> impossible_;    // by name, of those that are done
  int64_t num_nodes_ = 0, num_values_ = 0, num_copied_ = 0, num_states_ = 0;
  size_t value_bytes_ = 0;
};

}  // namespace fathom::grammar
