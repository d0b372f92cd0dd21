#pragma once
// Checks the results of NCCL calls; this is done nowhere else. Only this folder's sources include
// this header.

#include <nccl.h>

#include <string>

#include "core/ports/call_deadline.hpp"
#include "reprise/error.hpp"

namespace reprise {

/// Converts NCCL's result to a code. Returns UNSUPPORTED if NCCL refuses the request (for example
/// two ranks on one device), PEER_FAILED if NCCL reports the loss of another rank, and INTERNAL for
/// errors of this rank.
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

[[noreturn]] inline void nccl_failed(ncclResult_t result, Code code, const CallDeadline& deadline) {
  throw Error(
      code,
      deadline.describe() + ": " + ncclGetErrorString(result) + "; " + ncclGetLastError(nullptr),
      {.rank = deadline.self()});
}

/// Throws if a call failed. An operation that is still in progress has not failed.
inline void check_nccl(ncclResult_t result, const CallDeadline& deadline) {
  if (has_failed(result)) nccl_failed(result, code_of(result), deadline);
}

}  // namespace reprise
