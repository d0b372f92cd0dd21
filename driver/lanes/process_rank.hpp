#pragma once
// A rank of a lane with real processes. The launcher starts it as `reprise rank ...`.

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
  std::string records;  ///< directory of this launch: the past, and the ranks' locks and records
  std::string mutant;
  LogOptions log;
};

/// Name of the file in RankTask::records that describes earlier lives.
inline constexpr const char* kPastFile = "past.json";
std::string record_file(const std::string& records, std::int32_t rank);

/// Runs the process's whole life as a rank: its lock, MPI, the incarnation, the record. `rank` is
/// its index in the launch if the launcher told the process; then the rank and its peers know of
/// each other before MPI starts. Returns the exit code. If some rank does not finish, the call does
/// not return but leaves by _Exit. A rank that is to crash writes what it has of its record, then
/// kills itself.
int run_process_rank(const RankTask& task, std::optional<GlobalRank> rank);

}  // namespace reprise::driver
