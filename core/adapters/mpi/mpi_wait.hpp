#pragma once
// Waits for MPI operations until a deadline. Only this folder's sources include this header.

#include <mpi.h>

#include <functional>

#include "core/ports/call_deadline.hpp"

namespace reprise {

/// Starts an operation and polls it until it is done. Throws the same errors as
/// CallDeadline::until(), and PEER_FAILED if MPI reports that a rank failed. After an error, the
/// operation is still pending.
void finish_mpi(CallDeadline& deadline, const std::function<int(MPI_Request*)>& start);

}  // namespace reprise
