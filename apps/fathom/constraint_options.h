// What an answer must be, as the command line and lines of --jsonl say it.
#pragma once

#include <boost/json/fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "command.h"
#include "fathom/constraint.h"
#include "fathom/status.h"

namespace fathom::app {

// --json-schema, --json-object, --regex, --grammar, --choice.
void add_constraint_options(Command app, std::optional<Constraint>* out);

// A name of "params" that sets a constraint: those of codec::read_constraint_field.  nullopt: not
// such a name.
std::optional<Status> read_constraint_param(std::string_view name, const boost::json::value& value,
                                            std::optional<Constraint>* out);

}  // namespace fathom::app
