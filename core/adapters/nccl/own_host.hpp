#pragma once
// Lets tests run several ranks on one device.

#include "reprise/types.hpp"

namespace reprise {

/// Lets NCCL treat this process as if it were alone on a host and reached the others over the
/// loopback interface. Without this, NCCL refuses two ranks of one host on one device. Sets
/// environment variables, which NCCL reads once, so this must be called before anything else in
/// this folder is used and before threads are started. Loopback connections are far slower than the
/// usual connections within a node.
void pose_as_own_host(GlobalRank rank);

}  // namespace reprise
