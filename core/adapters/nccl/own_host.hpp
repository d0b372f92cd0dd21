#pragma once
// Lets tests run several ranks on one device.

#include "reprise/types.hpp"

namespace reprise {

/// Makes NCCL believe that this process is on a host of its own and reaches the others over the
/// loopback interface. NCCL refuses two ranks of one host on one device. Sets environment
/// variables, which NCCL reads once: call this before anything else of this folder and before
/// threads are started. Such connections are far slower than real ones within a node.
void pose_as_own_host(GlobalRank rank);

}  // namespace reprise
