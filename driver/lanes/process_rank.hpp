#pragma once
// Runs a rank of a lane with real processes. The launcher starts each rank as `reprise rank ...`.

#include <cstdint>
#include <optional>
#include <string>

#include "driver/language/scenario.hpp"
#include "driver/record/phase_log.hpp"

namespace reprise::driver {

/// Arguments that the driver passes to a rank on its command line.
struct RankTask {
  LaneKind lane = LaneKind::kMpi;  ///< kMpi or kGpu
  std::int32_t world = 0;          ///< number of ranks of the launch
  std::string scenario;            ///< path of the scenario file
  std::uint64_t incarnation = 0;
  std::string store;    ///< directory of the store
  std::string records;  ///< directory of this launch: earlier lives, locks, records
  std::string mutant;
  LogOptions log;
};

/// Name of the file in RankTask::records that describes earlier lives.
inline constexpr const char* kPastFile = "past.json";
std::string record_file(const std::string& records, std::int32_t rank);

/// Runs this process as a rank: takes the rank's lock, starts MPI, runs the incarnation and writes
/// the record. Returns the exit code. `rank` is the rank's index in the launch, if the launcher
/// passes it; ranks can then watch each other even before MPI starts. If some rank does not finish,
/// this rank calls _Exit and the function does not return. If a crash is planned for this rank, the
/// rank first writes its record so far and then kills itself.
int run_process_rank(const RankTask& task, std::optional<GlobalRank> rank);

}  // namespace reprise::driver
