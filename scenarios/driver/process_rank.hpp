#pragma once
// A rank of a lane with real processes, which its launcher starts as `reprise rank ...`.

#include <cstdint>
#include <optional>
#include <string>

#include "scenarios/driver/phase_log.hpp"
#include "scenarios/driver/scenario.hpp"

namespace reprise::driver {

/// What the driver tells a rank on its command line.
struct RankTask {
  LaneKind lane = LaneKind::kMpi;  ///< or kGpu
  std::int32_t world = 0;          ///< ranks of the launch
  std::string scenario;            ///< file
  std::uint64_t incarnation = 0;
  std::string store;    ///< directory
  std::string records;  ///< directory of this launch: what was before, the ranks' locks and records
  std::string mutant;
  LogOptions log;
};

/// In RankTask::records.
inline constexpr const char* kPastFile = "past.json";
std::string record_file(const std::string& records, std::int32_t rank);

/// The process's whole life as a rank: its lock, MPI, the incarnation, the record. `rank` is its
/// place among the launch's ranks where the launcher told it to the process: then its peers know of
/// it, and it of them, before MPI does. Returns its exit code;
/// where not all ranks come to the end it does not return but leaves by _Exit. A rank that is to
/// crash leaves what it has of its record, then kills itself.
int run_process_rank(const RankTask& task, std::optional<GlobalRank> rank);

}  // namespace reprise::driver
