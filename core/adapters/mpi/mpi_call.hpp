#pragma once
// The only place that checks MPI's results, and MPI details that other headers hide. Included only
// by this folder's sources.

#include <mpi.h>

#include <string>

#include "reprise/error.hpp"

namespace reprise {

/// Declared here for MpiSession::world().
struct MpiWorld {
  MPI_Comm comm = MPI_COMM_NULL;
};

/// Throws PEER_FAILED with MPI's message. Communicators here return errors (MPI_ERRORS_RETURN).
inline void check_mpi(int result, const std::string& what, GlobalRank rank) {
  if (result == MPI_SUCCESS) return;
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  MPI_Error_string(result, text.data(), &length);
  text.resize(static_cast<std::size_t>(length));
  throw Error(Code::kPeerFailed, what + ": " + text, {.rank = rank});
}

}  // namespace reprise
