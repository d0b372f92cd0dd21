#pragma once
// How the ranks of a job find each other.

#include "core/adapters/socket/reception.hpp"
#include "reprise/socket.hpp"

namespace reprise {

/// Collective. Returns when all ranks have come. `reception` is where this rank listens, and `end`
/// when the wait is over. Throws what socket_fabric() throws; if one rank can't go on, rank 0 tells
/// those that wait.
Session meet(const SocketOptions& options, Reception& reception, Instant end);

}  // namespace reprise
