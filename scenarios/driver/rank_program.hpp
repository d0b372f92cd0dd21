#pragma once
// Runs one rank in one incarnation: the same program on every lane.

#include <functional>
#include <optional>

#include "reprise/error.hpp"
#include "reprise/ports.hpp"
#include "scenarios/driver/history.hpp"
#include "scenarios/driver/phase_log.hpp"
#include "scenarios/driver/record.hpp"
#include "scenarios/driver/scenario.hpp"
#include "scenarios/driver/twin.hpp"
#include "sim/faults/faulty_ports.hpp"
#include "sim/mutants/mutants.hpp"

namespace reprise::driver {

/// Directory of a scenario's checkpoints within its store.
inline constexpr const char* kCheckpointRoot = "checkpoints";

/// Changes a loaded state before the job gets it, to test that the judges notice.
struct Interference {
  std::function<void(Value& common)> common;  ///< called wherever it is read
  std::function<void(GlobalRank rank, StateDict& loaded)> state;
};

/// Everything that a rank is given. All of it is borrowed.
struct RankPart {
  const Scenario& scenario;
  std::size_t incarnation = 0;
  const Past& past;  ///< effects of the earlier incarnations
  const sim::Policies& policies;
  TwinBook& twins;
  const Ports& ports;
  sim::FaultBook& faults;  ///< holds the faults of faults_of(); ranks may share it
  sim::FaultPowers powers;
  /// Called when the record is consistent: a save begins or ends well, an action is done.
  std::function<void()> keep_record = {};
  PhaseLog* log = nullptr;  ///< gets the job's step, and phases as a trace of `ports`
  const Interference* interference = nullptr;
  /// Memory of the job's arrays; `ports.device` copies from and to it.
  sim::Processor& processor = sim::host_processor();
};

/// Runs the rank's job and compares it with an uninterrupted job of `twins`. All incarnations but
/// the first begin by loading into a fresh job with another seed. Fills the record as things
/// happen, errors included, and returns the error that ended the rank; an exception that ends a
/// killed rank passes through. A rank that is not a member of the job does nothing.
std::optional<Error> run_rank(const RankPart& part, RankRecord& record);

}  // namespace reprise::driver
