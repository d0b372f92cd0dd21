#pragma once
// An incarnation that is somebody else's program: a framework's own save or load, a script. It is
// judged by the checkpoints that it leaves.

#include <string>

#include "scenarios/driver/lane.hpp"
#include "scenarios/driver/record.hpp"
#include "scenarios/driver/scenario.hpp"

namespace reprise::driver {

/// Runs it over the lane's store, or over a copy on disk that is taken back. The record has one
/// rank, which tells what the newest checkpoint holds afterwards. Rulings:
///
///   VERDICT_DISAGREEMENT  another exit code, or its time was over, or it left processes behind
///   TRACKER_DANGLING      what the tracker names is not whole
///   COMMIT_MISSING        it was to leave a checkpoint of another step, or any
///   BIT_MISMATCH          that step was saved before, and its tensors held something else
IncarnationRecord run_foreign(const Scenario& scenario, std::size_t number, Lane& lane,
                              const LaneOptions& options, const Past& past);

}  // namespace reprise::driver
