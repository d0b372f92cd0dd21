#pragma once
// How much host memory a save or a load holds beside the job's own, as its ports see it.
//
//   device   gather:  leaf -> [ host side ]      scatter: [ host side ] -> leaf
//   store    write_at [ bytes ]                  read_at  [ bytes ]
//
// What copies go through, and what is read or written of it, is taken to be held from then on: the
// bytes of all such addresses together, each counted once. Of buffers that are only read or only
// written, which pass, the largest one counts. What a collective brings while a load reads tensors
// is held, too, the largest of all such. The job's own memory does not count; what a leaf has
// beside it was made for the operation, and is held all the time.

#include <cstdint>
#include <memory>
#include <span>

#include "core/state/state_dict.hpp"
#include "reprise/ports.hpp"

namespace reprise::sim {

/// In bytes; of the last save and the last load.
struct MemoryPeaks {
  std::uint64_t snapshot = 0;  ///< host sides of a save's gathers
  std::uint64_t stage = 0;     ///< all that a save held until its commit
  std::uint64_t load = 0;      ///< while a load read tensors and objects
  std::uint64_t wire = 0;      ///< of the largest collective so far: what went in and what came out
};

class MemoryMeter {
 public:
  /// The ports are borrowed and outlive it. Several threads of one rank may use them.
  explicit MemoryMeter(const Ports& inner);
  ~MemoryMeter();
  MemoryMeter(const MemoryMeter&) = delete;
  MemoryMeter& operator=(const MemoryMeter&) = delete;

  const Ports& ports() const;
  /// `own` is the job's memory; `leaves` are saved or filled from here on, in it or beside it.
  void set_own(std::span<const ByteSpan> own, const StateDict& leaves);
  /// All of the leaves' memory is the job's.
  void set_own(const StateDict& leaves);
  MemoryPeaks peaks() const;
  /// From storage, while the last load read tensors and objects.
  std::uint64_t bytes_read() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace reprise::sim
