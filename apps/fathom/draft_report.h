// What became of drafts, as JSON.
#pragma once

#include "fathom/engine.h"
#include "json_writer.h"

namespace fathom::app {

// An object: totals, mean accepted length, calibration error, and lists by position.
void write_drafts(JsonWriter& json, const DraftStats& drafts);

}  // namespace fathom::app
