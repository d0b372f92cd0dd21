#pragma once
// Defines the memory and arithmetic for a job's arrays: the host or a GPU. Every processor computes
// the same bits, except for NaNs that arithmetic produces.
//
// Operations on a processor's memory run in the order of the calls. A call that returns numbers or
// bytes waits for all earlier operations. Other calls may return before their operation is
// complete.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/base/bytes.hpp"
#include "core/geometry/element_map.hpp"
#include "core/state/state_dict.hpp"
#include "sim/job/model/element_work.hpp"

namespace reprise::sim {

/// Memory of a processor. Its last owner frees it. It must not outlive the processor.
using ArrayMemory = std::shared_ptr<std::byte[]>;

/// A strided copy within a processor's memory; both views start at the region's first element.
struct BoxCopy {
  ConstStridedView source;
  StridedView target;
  Dims extents;
  std::size_t element_bytes = 1;
};

/// If a device fails, the first call that notices the failure throws the error of the device's
/// adapter.
class Processor {
 public:
  virtual ~Processor() = default;

  /// True if host code may dereference addresses of this processor's memory.
  virtual bool host_memory() const = 0;
  /// Returns memory with undefined content, aligned to at least 16 bytes. Throws NO_SPACE if a
  /// device is full.
  virtual ArrayMemory allocate(std::size_t bytes) = 0;
  /// Copies from the host. The caller may change the host's bytes after the call.
  virtual void copy_in(ByteSpan host, std::byte* to) = 0;
  /// Copies to the host. The host's bytes are complete after the call.
  virtual void copy_out(const std::byte* from, MutableByteSpan host) = 0;
  /// Performs the copies in any order. They must not overlap.
  virtual void copy(std::span<const BoxCopy> copies) = 0;

  /// Applies `work` to each element of the maps, in any order.
  virtual void run(std::span<const ElementMap> over, const ElementWork& work) = 0;
  /// Returns the sums of `term` over all elements of the maps.
  virtual Sums sum(std::span<const ElementMap> over, const ElementTerm& term) = 0;
  /// Finds the first stale weight in the order of the maps. Returns the number of elements before
  /// it, or nothing if no weight is stale.
  virtual std::optional<std::int64_t> first(std::span<const ElementMap> over,
                                            const StaleWeight& stale) = 0;
};

/// Returns the host, which has no state. Thread-safe.
Processor& host_processor();

/// Returns a leaf's part of content_digest() (see properties/content_digest.hpp). Computes it on
/// `processor`, where the leaf's memory is.
std::uint64_t leaf_digest(Processor& processor, const TensorLeaf& leaf, std::uint64_t key);

}  // namespace reprise::sim
