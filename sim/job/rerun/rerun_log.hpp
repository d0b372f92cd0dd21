#pragma once
// Writes and reads the file of rejected results, which has one line per result in Megatron's form.
// It contains the lines of all lives of a job. Lines of any other form are ignored.
//
//   ts=- node=n0 device=1 jobID=2 rank=3 iteration=7 status=initial_run result=nan message='...'

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/types.hpp"
#include "sim/job/rerun/rerun_state.hpp"

namespace reprise::sim {

/// Name of the file, next to the checkpoints.
inline constexpr std::string_view kRerunLog = "rerun_results.log";

/// A rejected result. Devices are given as "node:index".
struct RejectedResult {
  std::string device;
  std::string job_id;
  GlobalRank rank;
  std::int64_t iteration = 0;
  RerunStatus status = RerunStatus::kInitialRun;
  double result = 0;
  std::string message;
};
std::string line_of(const RejectedResult& rejected);

/// Returns the log line for an iteration that is run again from a checkpoint.
std::string restart_line(std::string_view device, std::string_view job_id, GlobalRank rank,
                         std::int64_t iteration);
/// Counts the restart lines of an iteration.
std::int64_t restarts_in(std::span<const std::string> lines, std::int64_t iteration);

/// Returns the iterations that the job must not train on again. Such an iteration has at least two
/// bad results of one rank: reproduced results, or fatal results with the machine disabled. If
/// several ranks had bad results in the iteration during one life, the data is not at fault, and
/// the iteration is not returned.
std::vector<std::int64_t> iterations_to_skip(std::span<const std::string> lines);

}  // namespace reprise::sim
