#pragma once
// Defines communication within a group of ranks. All calls are collective: every member makes the
// same calls in the same order. A call blocks until it is done. If the fabric's deadline passes
// first, the call throws DEADLINE; the message names group, operation and rank. Do not use a
// communicator again after an error.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "reprise/mesh.hpp"

namespace reprise REPRISE_API {

enum class Reduce : std::uint8_t { kMin, kMax, kSum };

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual const Group& group() const = 0;
  /// Returns the rank of this process within the group.
  virtual GroupRank rank() const = 0;

  virtual void barrier() = 0;
  /// Returns the buffers of all members, in group order. Their lengths may differ.
  virtual std::vector<Bytes> all_gather(ByteSpan mine) = 0;
  /// Most bytes that the engine asks all_gather_on_device() to gather, in all.
  static constexpr std::uint64_t kOnDeviceMax = std::uint64_t{64} << 20U;
  /// Gathers the members' shares of a buffer in the memory of the device to which this communicator
  /// belongs, and returns where the buffer begins. The share of member n begins n * `share` bytes
  /// after that; `share` is the same on all members. A member may send less, and then the bytes up
  /// to the next share have no meaning. The buffer stays there until the next call; copies from it
  /// must be done by then. The call is fastest if `mine` is staging memory of the device. If it
  /// fails, `mine` may stay in use for as long as the process lives. Returns null on all members,
  /// and sends nothing, if the communicator has no device or not that much room there; then use
  /// all_gather().
  virtual const std::byte* all_gather_on_device(std::uint64_t share, ByteSpan mine) {
    static_cast<void>(share);
    static_cast<void>(mine);
    return nullptr;
  }
  /// Sends the root's `bytes` to all members, and returns them on every member. The `bytes` that
  /// other members pass are ignored.
  virtual Bytes broadcast(GroupRank root, ByteSpan bytes) = 0;
  /// Reduces int64 values elementwise; all members pass the same number of values.
  virtual std::vector<std::int64_t> all_reduce(Reduce how, std::span<const std::int64_t> mine) = 0;

  /// Tells the other members that this one has failed in work for which they may be waiting
  /// elsewhere, such as on another fabric. Not collective, and waits for nobody. Members that never
  /// ask are not disturbed. The default does nothing: the others then wait until their deadline.
  virtual void warn() {}
  /// True if another member has called warn(). Not collective, and does not block.
  virtual bool warned() { return false; }
};

/// Creates communicators for groups of ranks. Creation is collective over the members of the group;
/// other ranks take no part.
class Fabric {
 public:
  virtual ~Fabric() = default;
  virtual GlobalRank rank() const = 0;
  virtual std::int32_t world_size() const = 0;
  virtual std::shared_ptr<Communicator> communicator(const Group& group) = 0;
};

/// Returns a fabric that sends bytes between GPUs with NCCL, over which a load spreads what it
/// reads once for several ranks (JobPorts::data). `fabric` connects the same ranks, and introduces
/// them to each other. `device` is a CUDA index. Each call of a communicator ends after `deadline`,
/// which is to be shorter than that of `fabric`. Throws UNSUPPORTED if the device can't be used.
/// The last owner frees what NCCL holds, for which the ranks meet once more. Needs the package
/// component "nccl".
std::shared_ptr<Fabric> nccl_fabric(std::shared_ptr<Fabric> fabric, int device,
                                    std::chrono::nanoseconds deadline = std::chrono::minutes(10));

}  // namespace REPRISE_API
