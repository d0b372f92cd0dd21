#pragma once
// The one place where NCCL's results are checked. Included by this folder's sources only.

#include <nccl.h>

#include <string>

#include "core/ports/patience.hpp"
#include "reprise/error.hpp"

namespace reprise {

/// UNSUPPORTED where NCCL refuses what it was asked for, as two ranks on one device; PEER_FAILED
/// where it says that a peer is gone; all else is this rank's own: INTERNAL.
inline Code code_of(ncclResult_t failure) {
  switch (failure) {
    case ncclInvalidUsage:
    case ncclInvalidArgument:
      return Code::kUnsupported;
    case ncclRemoteError:
      return Code::kPeerFailed;
    default:
      return Code::kInternal;
  }
}

inline bool has_failed(ncclResult_t result) {
  return result != ncclSuccess && result != ncclInProgress;
}

[[noreturn]] inline void nccl_failed(ncclResult_t result, Code code, const Patience& patience) {
  throw Error(
      code,
      patience.describe() + ": " + ncclGetErrorString(result) + "; " + ncclGetLastError(nullptr),
      {.rank = patience.self()});
}

/// An operation that is still under way is no failure.
inline void check_nccl(ncclResult_t result, const Patience& patience) {
  if (has_failed(result)) nccl_failed(result, code_of(result), patience);
}

}  // namespace reprise
