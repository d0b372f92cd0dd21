#pragma once
// Runs a life that is another program: a framework's own save or load, or a script. The
// judges know nothing about such a program except the checkpoints that it leaves.

#include <string>

#include "driver/lanes/lane.hpp"
#include "driver/language/scenario.hpp"
#include "driver/record/record.hpp"

namespace reprise::driver {

/// Runs the program on the lane's store, or on a copy on disk that is copied back afterwards. The
/// record has one rank, with the content of the newest checkpoint after the run. Findings:
///
///   VERDICT_DISAGREEMENT  the program's exit code was wrong, it ran out of time, or it left
///                         processes behind
///   TRACKER_DANGLING      the tracker names a checkpoint that is not whole
///   COMMIT_MISSING        the program left no checkpoint of the step that it had to commit
///   BIT_MISMATCH          that step was saved before with other tensor contents
LifeRecord run_foreign(const Scenario& scenario, std::size_t number, Lane& lane,
                       const LaneOptions& options, const Past& past);

}  // namespace reprise::driver
