#pragma once
// Checks the results of MPI calls; this is done nowhere else. Also defines MpiWorld. Only this
// folder's sources include this header.

#include <mpi.h>

#include <string>

#include "reprise/error.hpp"

namespace reprise {

/// Contains the communicator behind MpiSession::world(). Headers without MPI types only
/// forward-declare this struct.
struct MpiWorld {
  MPI_Comm comm = MPI_COMM_NULL;
};

/// Throws PEER_FAILED with MPI's message if a call failed. All communicators here return errors
/// (MPI_ERRORS_RETURN).
inline void check_mpi(int result, const std::string& what, GlobalRank rank) {
  if (result == MPI_SUCCESS) return;
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  MPI_Error_string(result, text.data(), &length);
  text.resize(static_cast<std::size_t>(length));
  throw Error(Code::kPeerFailed, what + ": " + text, {.rank = rank});
}

}  // namespace reprise
