#pragma once
// The only place that checks NCCL's results. Included only by this folder's sources.

#include <nccl.h>

#include <string>

#include "core/ports/patience.hpp"
#include "reprise/error.hpp"

namespace reprise {

/// Returns UNSUPPORTED if NCCL refuses the request, such as two ranks on one device; PEER_FAILED if
/// it reports a lost peer; INTERNAL for all errors of this rank's own.
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

/// Throws on failure; an operation still in progress is not a failure.
inline void check_nccl(ncclResult_t result, const Patience& patience) {
  if (has_failed(result)) nccl_failed(result, code_of(result), patience);
}

}  // namespace reprise
