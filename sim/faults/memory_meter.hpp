#pragma once
// Measures the host memory that a save or a load uses in addition to the job's own memory. The
// meter finds this memory in the arguments of port calls.
//
//   device   gather:  leaf -> [ host side ]      scatter: [ host side ] -> leaf
//   store    write_at [ bytes ]                  read_at  [ bytes ]
//
// The host memory of a gather or scatter counts as held from that call until the operation ends.
// Each held address is counted once. A buffer that is passed only to the store, and is never part
// of a copy, is temporary; only the largest such buffer counts. While a load reads tensors, the
// largest result of a collective counts, too. If a leaf is outside the job's own memory, its memory
// was allocated for the operation and counts from the beginning to the end.

#include <cstdint>
#include <memory>
#include <span>

#include "core/state/state_dict.hpp"
#include "reprise/ports.hpp"

namespace reprise::sim {

/// Peak memory use of the last save and of the last load, in bytes.
struct MemoryPeaks {
  std::uint64_t snapshot = 0;  ///< host memory into which a save copied the state
  std::uint64_t stage = 0;     ///< all memory that a save held until its commit
  std::uint64_t load = 0;      ///< memory that a load held while it read tensors and objects
  std::uint64_t wire = 0;      ///< largest collective so far: bytes sent plus bytes received
};

class MemoryMeter {
 public:
  /// Borrows the ports, which must outlive this object. Several threads of one rank may use it.
  explicit MemoryMeter(const Ports& inner);
  ~MemoryMeter();
  MemoryMeter(const MemoryMeter&) = delete;
  MemoryMeter& operator=(const MemoryMeter&) = delete;

  const Ports& ports() const;
  /// `own` is the job's own memory. From this call on, the job saves or fills `leaves`, whose
  /// memory may be inside or outside of `own`.
  void set_own(std::span<const ByteSpan> own, const StateDict& leaves);
  /// Treats all memory of the leaves as the job's own.
  void set_own(const StateDict& leaves);
  MemoryPeaks peaks() const;
  /// Returns the number of bytes read from storage while the last load read tensors and objects.
  std::uint64_t bytes_read() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace reprise::sim
