#pragma once
// Ranks that mpirun has started: each process runs every test.

#include "core/adapters/mpi/mpi_session.hpp"

namespace reprise::contracts {

/// Chooses this rank's device. Collective over the session's ranks.
void launch_over(MpiSession& session);

}  // namespace reprise::contracts
