// `fathom bench --profile`: where the time of a step goes, by operation.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "bench/floors.h"
#include "json_writer.h"
#include "kernels/op_work.h"

namespace fathom::app {

struct ProfileLine {
  std::string op;  // "linear.int8_avx512 fp8"
  int64_t calls = 0;
  double seconds = 0;
  double floor = 0;      // seconds; 0: none is known
  double amx_floor = 0;  // with AMX; 0: it takes no part
  bench::Work work;
};

// One step: its wall time, and what it ran, most time first.
struct StepProfile {
  double seconds = 0;
  std::vector<ProfileLine> lines;

  // Time of all but the products with stored weights, as a share of the whole.
  double share_of_the_rest() const;
};

// Adds up what a model runs between start() and stop().  Thread: the one that runs the model.
class ProfileRecorder : public kernels::OpProbe {
 public:
  void start();
  StepProfile stop(const bench::Peaks& peaks, kernels::Numerics numerics);

  void before() override;
  void after(const char* kernel, const kernels::OpWork& work) override;

 private:
  using Clock = std::chrono::steady_clock;
  bool on_ = false;
  Clock::time_point start_, op_start_;
  std::vector<ProfileLine> lines_;
};

std::string profile_text(const std::string& row, const StepProfile& profile);
void write_profile(JsonWriter& json, const StepProfile& profile);

}  // namespace fathom::app
