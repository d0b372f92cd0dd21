#pragma once
// Defines the settings of a job's rerun machine.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/job/model/data_iterator.hpp"
#include "sim/job/rerun/rerun_injector.hpp"
#include "sim/job/rerun/rerun_state.hpp"
#include "sim/job/rerun/rerun_statistics.hpp"

namespace reprise::sim {

/// A result that a rank reports in a run.
struct ResultCall {
  std::int64_t iteration = 0;  ///< number of the iteration; the first is 1
  int call = 0;                ///< 0 for the loss, 1 for the norm of the gradients
  int run = 0;                 ///< 0 for the initial run, 1 for a re-run
};

/// Decides when a load requests this rank's rerun object.
enum class RerunTemplate : std::uint8_t {
  kAsStored,  ///< requests the object if the common state has rerun state
  kForced,    ///< always requests the object
};

/// Options of the rerun machine other than its mode.
struct RerunOptions {
  CheckpointFormat format = CheckpointFormat::kTorchDist;
  RerunTemplate asks = RerunTemplate::kAsStored;
  Wrapping iterators = Wrapping::kWrapped;
  double tolerance = 0;  ///< relative difference allowed in reproduced results
  LargeValues::Limits large = {};
  ErrorInjector injector = {};
  std::string job_id = "N/A";           ///< id of this life in the log of rejected results
  std::vector<std::string> log = {};    ///< log lines of earlier lives
  std::vector<std::int64_t> skip = {};  ///< iterations that consume samples without training
};

struct RerunSettings {
  RerunMode mode = RerunMode::kDisabled;
  RerunOptions options = {};
  /// False for an older job, which neither validates results nor reads rerun state.
  bool knows = true;
  /// Returns the result that this rank's device reports for the correct result `right`. If this
  /// function is empty, the device reports `right`. Only validations see the reported result; the
  /// update uses `right`.
  std::function<double(const ResultCall&, double right)> result = {};
};

}  // namespace reprise::sim
