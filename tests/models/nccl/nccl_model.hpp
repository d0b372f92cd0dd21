#pragma once
// A model of NCCL over the model of CUDA's runtime. Its ranks are fibers of one thread, each of
// them a process. docs/gpu.md has its rules.

#include <cstdint>
#include <string>
#include <vector>

#include "tests/models/nccl/vendor/nccl.h"

namespace reprise::models {

/// A failure that NCCL notices by itself and reports when it is asked.
struct AsyncFailure {
  int process = -1;             ///< the process whose communicators fail; -1 for none
  std::uint64_t operation = 0;  ///< from this operation of a communicator on, counted from 1
  ncclResult_t result = ncclRemoteError;  ///< ncclInProgress: the operation never begins
  /// True if the operation seems to have begun: success is said once, and the failure then.
  bool late = false;
};

struct NcclSettings {
  std::vector<std::string> nodes = {};  ///< by process; a process beyond the list is on node "n0"
  AsyncFailure async = {};
};

/// Begins anew. Call it after reset() of the model of CUDA, whose schedule it shares.
void reset_nccl(const NcclSettings& settings);

/// Takes what the environment tells the running process (NCCL_HOSTID, NCCL_SOCKET_IFNAME) and
/// removes it: processes that are fibers share one environment.
void take_environment();

/// Returns how many communicators were neither destroyed nor aborted.
std::size_t live_communicators();

}  // namespace reprise::models
