#pragma once
// The two sides of the lane with real processes: the driver, which launches, and a rank, which is
// launched as `reprise rank ...`.

#include <cstdint>
#include <string>

#include "scenarios/driver/lane.hpp"

namespace reprise::driver {

/// What the driver tells a rank on its command line.
struct RankTask {
  std::string scenario;  ///< file
  std::uint64_t incarnation = 0;
  std::string store;    ///< directory
  std::string records;  ///< directory for the record
  std::string mutant;
  std::uint64_t deadline_s = kCollectiveDeadlineS;  ///< of one collective
};

/// The process's whole life as a rank: MPI, the incarnation, the record. Returns its exit code;
/// after a failed peer it does not return but leaves by _Exit.
int run_mpi_rank(const RankTask& task);

}  // namespace reprise::driver
