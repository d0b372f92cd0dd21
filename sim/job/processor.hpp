#pragma once
// Where a job's arrays live and who does the arithmetic on them: the host, or a GPU. Every
// processor makes the same bits, and NaNs that arithmetic makes are no part of that.
//
// Work on a processor's memory is done in the order in which it is asked for. What returns numbers
// or bytes waits for all of it; the rest may still be under way when the call returns.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/base/bytes.hpp"
#include "core/geometry/element_map.hpp"
#include "core/state/state_dict.hpp"
#include "sim/job/element_work.hpp"

namespace reprise::sim {

/// Memory of a processor. The last owner frees it; the processor outlives it.
using ArrayMemory = std::shared_ptr<std::byte[]>;

/// A strided copy within a processor's memory; both views start at the region's first element.
struct BoxCopy {
  ConstStridedView source;
  StridedView target;
  Dims extents;
  std::size_t element_bytes = 1;
};

/// Errors of a device that fails are its adapter's, from whichever call comes across them.
class Processor {
 public:
  virtual ~Processor() = default;

  /// Whether host code may follow addresses of its memory.
  virtual bool host_memory() const = 0;
  /// Content undefined; at boundaries of 16 bytes at least. NO_SPACE on a device that is full.
  virtual ArrayMemory allocate(std::size_t bytes) = 0;
  /// The host's bytes may change once this has returned.
  virtual void copy_in(ByteSpan host, std::byte* to) = 0;
  /// The host's bytes are there once this has returned.
  virtual void copy_out(const std::byte* from, MutableByteSpan host) = 0;
  /// Copies that do not overlap, in no order.
  virtual void copy(std::span<const BoxCopy> copies) = 0;

  /// The work on each element of the maps, in no order.
  virtual void run(std::span<const ElementMap> over, const ElementWork& work) = 0;
  /// The sums of the term over all elements of the maps.
  virtual Sums sum(std::span<const ElementMap> over, const ElementTerm& term) = 0;
  /// How many elements of the maps, in their order, stand before the first that is stale; nothing
  /// if none is.
  virtual std::optional<std::int64_t> first(std::span<const ElementMap> over,
                                            const StaleWeight& stale) = 0;
};

/// The host. Holds nothing; any thread.
Processor& host_processor();

/// What a leaf's pieces add to content_digest() (see properties), on the processor that has them.
std::uint64_t leaf_digest(Processor& processor, const TensorLeaf& leaf, std::uint64_t key);

}  // namespace reprise::sim
