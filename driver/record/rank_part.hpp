#pragma once
// Defines the arguments of rank_main(), which runs one rank in one life.

#include <cstddef>
#include <functional>

#include "core/checkpoint/parsed_metadata.hpp"
#include "driver/language/scenario.hpp"
#include "driver/record/history.hpp"
#include "driver/record/phase_log.hpp"
#include "driver/record/reference_run.hpp"
#include "reprise/ports.hpp"
#include "sim/faults/faulty_ports.hpp"
#include "sim/mutants/mutants.hpp"
#include "sim/world/recorder.hpp"

namespace reprise::driver {

/// Changes a loaded state before the job gets it, to test that the judges notice the change.
struct Interference {
  std::function<void(Value& common)> common;  ///< called wherever the common state is read
  std::function<void(GlobalRank rank, StateDict& loaded)> state;
};

/// The arguments of rank_main(). Everything that is referenced must outlive the call.
struct RankPart {
  const Scenario& scenario;
  std::size_t life = 0;
  const Past& past;  ///< effects of the earlier lives
  const sim::Policies& policies;
  ReferenceRuns& references;
  ParsedMetadata& parsed;
  const Ports& ports;
  sim::FaultBook& faults;  ///< faults from faults_of(); ranks may share this object
  sim::FaultPowers powers;
  /// Called whenever the record is consistent: when a save begins or ends well, and after each
  /// action.
  std::function<void()> keep_record = {};
  /// The rank program sets the job's step in this log. The log is also the trace of `ports`, and
  /// thus receives the phases.
  PhaseLog* log = nullptr;
  /// The rank program tells it to which save the phases belong; null if nothing is recorded.
  sim::Recorder* recorder = nullptr;
  const Interference* interference = nullptr;
  /// Holds the memory of the job's arrays; `ports.device` copies from and to this memory.
  sim::Processor& processor = sim::host_processor();
};

}  // namespace reprise::driver
