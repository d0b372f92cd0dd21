#pragma once
// What a rank knows of its saves one by one, however many are in flight: what each holds beside the
// job's memory, and which lines of the log are its own.

#include <cstddef>
#include <map>
#include <span>

#include "core/state/state_dict.hpp"
#include "reprise/ports.hpp"
#include "reprise/types.hpp"
#include "scenarios/driver/phase_log.hpp"
#include "sim/faults/memory_meter.hpp"

namespace reprise::driver {

class SavesInFlight {
 public:
  /// Both are borrowed; null: nothing is logged.
  SavesInFlight(const Ports& inner, PhaseLog* log);
  ~SavesInFlight();
  SavesInFlight(const SavesInFlight&) = delete;
  SavesInFlight& operator=(const SavesInFlight&) = delete;

  /// The ports of a save of `saved` at `step`, until it has ended; `own` is the job's memory.
  const Ports& begin(std::size_t number, Step step, std::span<const ByteSpan> own,
                     const StateDict& saved);
  /// After the engine let go of it.
  void end(std::size_t number);

  sim::MemoryPeaks peaks(std::size_t number) const;
  /// The sum over all of them.
  sim::MemoryPeaks peaks_together() const;

 private:
  struct OneSave;

  const Ports& inner_;
  PhaseLog* log_;
  std::map<std::size_t, OneSave> saves_;  ///< by number
};

}  // namespace reprise::driver
