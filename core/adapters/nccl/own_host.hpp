#pragma once
// Lets several ranks share a device, and ranks of a node have devices of their own.

#include <string>

#include "core/adapters/nccl/shared_devices.hpp"
#include "reprise/fabric.hpp"
#include "reprise/types.hpp"

namespace reprise {

/// Presents this process to NCCL as `pose` says. Without own_host, NCCL refuses two ranks of one
/// host on one device. Sets environment variables, which NCCL reads once, so this must be called
/// before anything else in this folder is used and before threads are started. Sockets, and most of
/// all loopback connections, are far slower than the usual connections within a node.
void present_to_nccl(GlobalRank rank, const NcclPose& pose);

/// Returns what tells this machine from others, even from one of the same name: the name and the
/// content of the file `boot_id`. NCCL itself compares the same two.
std::string machine_of(const std::string& node,
                       const std::string& boot_id = "/proc/sys/kernel/random/boot_id");

/// Tells all ranks where this rank's device is, and presents it to NCCL. Collective over the world
/// of `fabric`. `device` is a CUDA index. Throws UNSUPPORTED if there is no such device.
void present_device_to_nccl(Fabric& fabric, const std::string& node, int device);

}  // namespace reprise
