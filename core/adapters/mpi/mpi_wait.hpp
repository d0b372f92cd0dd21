#pragma once
// Waiting for MPI without waiting for ever. Included by this folder's sources only.

#include <mpi.h>

#include <functional>

#include "core/ports/patience.hpp"

namespace reprise {

/// Starts an operation and tests it until it is done. Errors as Patience's, and PEER_FAILED where
/// MPI says so. The operation is then still pending.
void finish_mpi(Patience& patience, const std::function<int(MPI_Request*)>& start);

}  // namespace reprise
