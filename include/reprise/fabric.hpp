#pragma once
// Communication within one explicit group. All calls are collective: every member makes the same
// calls in the same order. They block until done or until the fabric's deadline (DEADLINE, naming
// group, operation and rank). After any error the communicator is not used again.

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
  /// This process within the group.
  virtual GroupRank rank() const = 0;

  virtual void barrier() = 0;
  /// Buffers of any length, in group order.
  virtual std::vector<Bytes> all_gather(ByteSpan mine) = 0;
  /// `bytes` counts at the root alone.
  virtual Bytes broadcast(GroupRank root, ByteSpan bytes) = 0;
  /// Elementwise over int64; all members give the same length.
  virtual std::vector<std::int64_t> all_reduce(Reduce how, std::span<const std::int64_t> mine) = 0;
};

/// Makes communicators from explicit groups. Making one is collective over the group's members and
/// over nobody else.
class Fabric {
 public:
  virtual ~Fabric() = default;
  virtual GlobalRank rank() const = 0;
  virtual std::int32_t world_size() const = 0;
  virtual std::shared_ptr<Communicator> communicator(const Group& group) = 0;
};

}  // namespace REPRISE_API
