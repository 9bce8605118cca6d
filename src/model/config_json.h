// Writes a ModelConfig as the config.json of the released format.
#pragma once

#include <string>

#include "model/config.h"

namespace fathom::model {

// parse_config() of the result gives an equal ModelConfig.  The config must be valid.
std::string config_json(const ModelConfig& config);

}  // namespace fathom::model
