#pragma once
// Measures how much memory each of a rank's saves in flight uses in addition to the job's own
// memory, tells the log and the recorder to which save each event belongs, and compares the save's
// trace with the protocol.

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/state/state_dict.hpp"
#include "driver/record/phase_log.hpp"
#include "driver/record/record.hpp"
#include "reprise/ports.hpp"
#include "reprise/types.hpp"
#include "sim/faults/memory_meter.hpp"
#include "sim/world/recorder.hpp"

namespace reprise::driver {

/// Those who are told to which save an event belongs. Each of them may be null.
struct SaveWatchers {
  PhaseLog* log = nullptr;
  sim::Recorder* recorder = nullptr;
};

class SavesInFlight {
 public:
  /// `inner`, `broken` and what the watchers point to must outlive this object. Adds a finding to
  /// `broken` for each save that breaks the protocol.
  SavesInFlight(const Ports& inner, SaveWatchers watchers, Findings& broken);
  ~SavesInFlight();
  SavesInFlight(const SavesInFlight&) = delete;
  SavesInFlight& operator=(const SavesInFlight&) = delete;

  /// Returns ports for saving the state `saved` at `step`. They are valid until the save has ended.
  /// `own` is the job's memory.
  const Ports& begin(std::size_t number, Step step, std::span<const ByteSpan> own,
                     const StateDict& saved);
  /// Called when the save has ended without an error.
  void returned(std::size_t number);
  /// Must be called after the engine has released the save.
  void end(std::size_t number);
  /// Returns the state of each save that has not ended, oldest first.
  std::vector<std::string> states() const;

  sim::MemoryPeaks peaks(std::size_t number) const;
  /// Returns the memory peaks of all saves in flight together.
  sim::MemoryPeaks peaks_together() const;

 private:
  struct OneSave;

  const Ports& inner_;
  SaveWatchers watchers_;
  Findings& broken_;
  std::map<std::size_t, OneSave> saves_;  ///< keyed by the save's number
};

}  // namespace reprise::driver
