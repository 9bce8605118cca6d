// fathom calibrate: temperatures of the draft module's confidence, and what steps cost here.
#include <cstdio>
#include <map>

#include "assembly/draft_temperatures.h"
#include "bench_prompts.h"
#include "commands.h"
#include "draft/calibration.h"
#include "failure.h"
#include "interrupt.h"
#include "json_writer.h"
#include "output.h"

namespace fathom::app {
namespace {

using draft::Outcome;
using draft::PositionFit;

// Pairs the drafts that were made with what became of them.  Thread: the engine's; read when the
// engine is idle.
class OutcomeCollector {
 public:
  void take(const StepResult& result) {
    if (!result.error.ok()) return;
    std::map<SlotId, int32_t> num_tokens;
    for (const SampledToken& token : result.tokens) ++num_tokens[token.slot];
    for (const SlotDrafts& d : result.drafts) {
      DraftOffer& made = made_[d.slot];
      if (d.num_verified > 0) {
        outcomes_.push_back({.offer = made,
                             .num_verified = d.num_verified,
                             .num_accepted = d.num_accepted,
                             .is_cut = num_tokens[d.slot] <= d.num_accepted});
      }
      made = d.next;
    }
  }
  const std::vector<Outcome>& outcomes() const { return outcomes_; }

 private:
  std::map<SlotId, DraftOffer> made_;
  std::vector<Outcome> outcomes_;
};

// Answers to pieces of the text: half of them greedy, half drawn.
class Pieces : public LoadSource {
 public:
  Pieces(PromptMaker& prompts, int num) : prompts_(prompts), num_(num) {}
  Result<std::optional<Request>> next(int) override {
    constexpr int kLengths[] = {48, 96, 192};
    if (made_ >= num_) return std::optional<Request>();
    Request request;
    request.prompt = prompts_.make(kLengths[made_ % 3]);
    request.params.temperature = made_ % 2 == 0 ? 0.0f : 1.0f;
    request.params.seed = static_cast<uint64_t>(made_++);
    request.params.max_tokens = 64;
    return std::optional<Request>(std::move(request));
  }

 private:
  PromptMaker& prompts_;
  int num_, made_ = 0;
};

std::string calibration_json(const CalibrateOptions& options,
                             const std::vector<PositionFit>& fits) {
  JsonWriter json;
  json.begin_object().key("temperatures").begin_array();
  for (const PositionFit& fit : fits) json.value(fit.temperature);
  json.end_array();
  json.member("text", std::filesystem::path(options.text_file).filename().string());
  json.key("positions").begin_array();
  for (const PositionFit& fit : fits) {
    json.begin_object().member("outcomes", fit.num).member("survived", fit.num_accepted);
    json.member("error_before", fit.error_before).member("error_after", fit.error_after);
    json.end_object();
  }
  return json.end_array().end_object().text() + "\n";
}

std::string table(const std::vector<PositionFit>& fits) {
  std::string text = "position  outcomes  survived  temperature  error before  after\n";
  for (size_t i = 0; i < fits.size(); ++i) {
    const PositionFit& f = fits[i];
    char line[120];
    std::snprintf(
        line, sizeof line, "%8zu  %8lld  %7.1f%%  %11.3f  %12.4f  %.4f\n", i + 1,
        static_cast<long long>(f.num),
        f.num == 0 ? 0 : 100 * static_cast<double>(f.num_accepted) / static_cast<double>(f.num),
        static_cast<double>(f.temperature), f.error_before, f.error_after);
    text += line;
  }
  return text;
}

Status calibrate(const CalibrateOptions& options) {
  if (options.engine.max_draft == 0)
    return wrong_use("--max-draft 0: there is nothing to calibrate");
  OutcomeCollector collector;
  EngineOptions engine_options = options.engine;
  engine_options.draft_verify = DraftVerify::kFixed;  // every draft is checked
  engine_options.measure_costs = true;
  FATHOM_ASSIGN(
      const std::unique_ptr<Engine> engine,
      start_engine(engine_options,
                   {.on_result = [&collector](const StepResult& result) { collector.take(result); },
                    .raw_confidences = true,
                    .measure_again = true}));
  if (engine->max_draft == 0) {
    return Status(StatusCode::kFailedPrecondition,
                  engine->dir.string() + ": has no draft module; there is nothing to calibrate");
  }
  FATHOM_ASSIGN(PromptMaker prompts, PromptMaker::create(options.text_file, *engine));
  Pieces pieces(prompts, options.prompts);
  FATHOM_ASSIGN(const LoadResult load,
                run_load(*engine->requests, options.engine.max_batch, pieces));
  engine->requests->drain();
  const std::vector<PositionFit> fits = draft::fit_temperatures(collector.outcomes());
  if (fits.empty()) {
    return Status(StatusCode::kFailedPrecondition,
                  options.text_file + ": its answers had no drafts; give a longer text");
  }
  const std::string json = calibration_json(options, fits);
  const std::string file = options.out_file.empty()
                               ? (engine->dir / assembly::kDraftCalibrationFile).string()
                               : options.out_file;
  FATHOM_ASSIGN(OutputFile out, OutputFile::create(file));
  FATHOM_TRY(out.write(json));
  FATHOM_TRY(out.commit());
  if (file == "-") return Status();
  if (options.json) return print(json);
  return print(table(fits) + "written to " + file + "\n");
}

}  // namespace

int run_calibrate(const CalibrateOptions& options) {
  const Status status = calibrate(options);
  return is_closed_output(status) ? kExitDone : finish(status);
}

}  // namespace fathom::app
