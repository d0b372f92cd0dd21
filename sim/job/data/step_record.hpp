#pragma once
// Defines the results of an iteration: its numbers, its samples, and whether the job must exit.

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "reprise/types.hpp"
#include "sim/job/model/data_iterator.hpp"
#include "sim/job/rerun/rerun_machine.hpp"

namespace reprise::sim {

struct StepRecord {
  Step step;                 ///< number of completed iterations
  std::int64_t loss = 0;     ///< loss of the whole model in units of 2^-20, equal in every layout
  double lr = 0;             ///< value that the step used
  double loss_scale = 0;     ///< scale that the step used; the first module's if there are several
  bool overflow = false;     ///< true if the update was skipped
  bool skipped = false;      ///< true if the iteration consumed its samples without training
  double gradient_norm = 0;  ///< norm over all modules, before clipping
  std::int64_t zeros = 0;    ///< number of zero gradients
  std::vector<double> scales = {};  ///< loss scales of all modules, in the order of their names

  friend bool operator==(const StepRecord&, const StepRecord&) = default;
  friend std::ostream& operator<<(std::ostream& out, const StepRecord& record);
};

/// Result of an attempt to run an iteration.
struct StepOutcome {
  std::optional<StepRecord> record;  ///< empty if the job exits before the update
  std::optional<RerunExit> exit;     ///< set if the job must exit
  std::vector<std::string> notes;    ///< messages for the operator
};

/// Samples that an iteration used.
struct AppliedSamples {
  SampleRange samples;
  bool skipped = false;  ///< true if the samples were consumed without training

  friend bool operator==(const AppliedSamples&, const AppliedSamples&) = default;
};

}  // namespace reprise::sim
