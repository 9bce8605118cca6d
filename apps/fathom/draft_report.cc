#include "draft_report.h"

namespace fathom::app {

void write_drafts(JsonWriter& json, const DraftStats& drafts) {
  json.begin_object().member("drafted", drafts.drafted).member("verified", drafts.verified);
  json.member("accepted", drafts.accepted).member("rounds", drafts.rounds);
  json.member("mean_accepted_length", drafts.mean_accepted_length());
  json.member("calibration_error", drafts.calibration_error);
  const auto list = [&](const char* name, const auto& counts) {
    json.key(name).begin_array();
    for (size_t i = 0; i < counts.size() && drafts.verified_at[i] > 0; ++i) json.value(counts[i]);
    json.end_array();
  };
  list("verified_at", drafts.verified_at);
  list("accepted_at", drafts.accepted_at);
  json.end_object();
}

}  // namespace fathom::app
