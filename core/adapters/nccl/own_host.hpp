#pragma once
// Lets tests run several ranks on one device.

#include "reprise/types.hpp"

namespace reprise {

/// Makes this process look to NCCL like one on a separate host that reaches the others over the
/// loopback interface, because NCCL refuses two ranks of one host on one device. Sets the process's
/// environment, which NCCL reads once; call it before anything of this folder and before starting
/// threads. Far slower than real connections within a node.
void pose_as_own_host(GlobalRank rank);

}  // namespace reprise
