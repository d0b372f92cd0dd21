#pragma once
// Runs a rank of a lane with real processes. The launcher starts each rank as
// `reprise-ranks rank ...`.

#include <optional>

#include "driver/lanes/rank_arguments.hpp"
#include "reprise/types.hpp"

namespace reprise::driver {

/// Runs this process as a rank: takes the rank's lock, starts MPI, runs the life and writes
/// the record. Returns the exit code. `rank` is the rank's index in the launch, if the launcher
/// passes it; ranks can then watch each other even before MPI starts. If some rank does not finish,
/// this rank calls _Exit and the function does not return. If a crash is planned for this rank, the
/// rank first writes its record so far and then kills itself.
int rank_process_main(const RankArguments& task, std::optional<GlobalRank> rank);

}  // namespace reprise::driver
