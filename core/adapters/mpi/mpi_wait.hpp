#pragma once
// Waits for MPI, but not forever. Included only by this folder's sources.

#include <mpi.h>

#include <functional>

#include "core/ports/patience.hpp"

namespace reprise {

/// Starts an operation and tests it until it is done. Throws like Patience, and PEER_FAILED if MPI
/// reports that. After an error the operation is still pending.
void finish_mpi(Patience& patience, const std::function<int(MPI_Request*)>& start);

}  // namespace reprise
