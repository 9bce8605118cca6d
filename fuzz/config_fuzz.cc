// Any bytes as a config.json: an error, or a config that is valid, lists its tensors and survives
// writing and reading.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "model/config.h"
#include "model/config_json.h"
#include "model/summary.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom::model;
  const auto config = parse_config({reinterpret_cast<const char*>(data), size}, "input");
  if (!config) {
    FATHOM_CHECK(!config.error().message().empty());
    return 0;
  }
  FATHOM_CHECK(config->validate().ok());
  const auto again = parse_config(config_json(*config), "again");
  FATHOM_CHECK(again.has_value()) << again.error().message();
  FATHOM_CHECK(*again == *config);
  // Lists of hundreds of thousands of tensors would only slow the search down.
  if (config->num_layers * config->num_experts > 2000) return 0;
  FATHOM_CHECK(summarize_weights(*config).total().bytes > 0);
  summarize_layers(*config);
  return 0;
}
