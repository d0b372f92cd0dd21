#pragma once
// What one rank does in one incarnation: the same program on every lane.

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

/// Where the checkpoints of a scenario stand within its store.
inline constexpr const char* kCheckpointRoot = "checkpoints";

/// What happens to a loaded state on its way to the job; for trying whether the judges see it.
struct Interference {
  std::function<void(Value& common)> common;  ///< wherever it is read
  std::function<void(GlobalRank rank, StateDict& loaded)> state;
};

/// What a rank is given. All is borrowed.
struct RankPart {
  const Scenario& scenario;
  std::size_t incarnation = 0;
  const Past& past;  ///< of the incarnations before
  const sim::Policies& policies;
  TwinBook& twins;
  const Ports& ports;
  sim::FaultBook& faults;  ///< with what faults_of() lists; ranks may share it
  sim::FaultPowers powers;
  /// Called where the record is of one piece: a save begins or ends well, an action is done.
  std::function<void()> keep_record = {};
  PhaseLog* log = nullptr;  ///< told of the job's step; it hears of phases as a trace of `ports`
  const Interference* interference = nullptr;
  /// That has the job's arrays; `ports.device` copies from and to them.
  sim::Processor& processor = sim::host_processor();
};

/// Does it and compares with a job of `twins` that was never interrupted. All incarnations but the
/// first begin by loading into a fresh job of another seed. Errors end up in the record, which is
/// filled as things happen, and the one that ended the rank is returned; what ends a killed rank
/// passes. A rank that is no member of the job does nothing.
std::optional<Error> run_rank(const RankPart& part, RankRecord& record);

}  // namespace reprise::driver
