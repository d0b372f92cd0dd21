#pragma once
// Several ranks on one device, for tests.

#include "reprise/types.hpp"

namespace reprise {

/// Lets this process look to NCCL like one on a host of its own, which talks to the others over the
/// loopback interface: NCCL refuses two ranks of one host on one device. Sets the process's
/// environment, which NCCL reads once; call it before anything of this folder and before there are
/// threads. Far slower than what a node's devices have between them.
void pose_as_own_host(GlobalRank rank);

}  // namespace reprise
