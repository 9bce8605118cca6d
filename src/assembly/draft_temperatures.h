// The calibration of a model's draft confidences, beside its checkpoint; `fathom calibrate` writes
// it.
#pragma once

#include <filesystem>
#include <vector>

#include "fathom/status.h"

namespace fathom::assembly {

inline constexpr const char* kDraftCalibrationFile = "draft_calibration.json";

// "temperatures" of DIR/draft_calibration.json, by position; empty if there is no such file.
// kDataLoss: it is not one.
Result<std::vector<float>> read_draft_temperatures(const std::filesystem::path& dir);

}  // namespace fathom::assembly
