#pragma once
// Waits for MPI, but not forever. Only this folder's sources include this header.

#include <mpi.h>

#include <functional>

#include "core/ports/patience.hpp"

namespace reprise {

/// Starts an operation and tests it until it is done. Throws like Patience, and PEER_FAILED if MPI
/// reports that a rank failed. After an error, the operation is still pending.
void finish_mpi(Patience& patience, const std::function<int(MPI_Request*)>& start);

}  // namespace reprise
