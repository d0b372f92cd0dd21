#pragma once
// Measures the host memory that a save or a load uses beyond the job's own, as its ports see it.
//
//   device   gather:  leaf -> [ host side ]      scatter: [ host side ] -> leaf
//   store    write_at [ bytes ]                  read_at  [ bytes ]
//
// From its first use on, memory counts as held if copies go through it and it is also read or
// written: all such addresses together, each counted once. Of buffers that are only read or only
// written, which are temporary, the largest one counts. During the read of tensors the largest
// result of a collective counts, too. The job's own memory does not count; other memory of a leaf
// was made for the operation and counts all the time.

#include <cstdint>
#include <memory>
#include <span>

#include "core/state/state_dict.hpp"
#include "reprise/ports.hpp"

namespace reprise::sim {

/// Peaks in bytes, of the last save and the last load.
struct MemoryPeaks {
  std::uint64_t snapshot = 0;  ///< host side of a save's gathers
  std::uint64_t stage = 0;     ///< everything that a save held until its commit
  std::uint64_t load = 0;      ///< while a load read tensors and objects
  std::uint64_t wire = 0;      ///< largest collective so far: bytes in plus bytes out
};

class MemoryMeter {
 public:
  /// Borrows the ports, which outlive it. Several threads of one rank may use them.
  explicit MemoryMeter(const Ports& inner);
  ~MemoryMeter();
  MemoryMeter(const MemoryMeter&) = delete;
  MemoryMeter& operator=(const MemoryMeter&) = delete;

  const Ports& ports() const;
  /// `own` is the job's memory; `leaves` are saved or filled from now on, inside or outside it.
  void set_own(std::span<const ByteSpan> own, const StateDict& leaves);
  /// Treats all memory of the leaves as the job's own.
  void set_own(const StateDict& leaves);
  MemoryPeaks peaks() const;
  /// Bytes read from storage while the last load read tensors and objects.
  std::uint64_t bytes_read() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace reprise::sim
