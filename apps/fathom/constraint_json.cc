// Constraints in lines of --jsonl.
#include <boost/json.hpp>

#include "codec/constraint_fields.h"
#include "codec/json_text.h"
#include "constraint_options.h"
#include "failure.h"

namespace fathom::app {

std::optional<Status> read_constraint_param(std::string_view name, const boost::json::value& value,
                                            std::optional<Constraint>* out) {
  Result<codec::JsonValue> same = codec::parse_json(boost::json::serialize(value));
  if (!same) return wrong_use(same.error().message());
  std::optional<Status> status = codec::read_constraint_field(name, *same, out);
  if (status && !status->ok()) return wrong_use(status->message());
  return status;
}

}  // namespace fathom::app
