#pragma once
// What must come of a scenario, from the requirements and not from the job.

#include <optional>
#include <string>

#include "scenarios/driver/scenario.hpp"

namespace reprise::driver {

struct ExpectedRefusal {
  Code code = Code::kInternal;
  std::string says;

  friend bool operator==(const ExpectedRefusal&, const ExpectedRefusal&) = default;
};

/// Why a checkpoint that was saved under `saved` must be refused under `loading`; nothing if it
/// must load. Optimizer state in buckets (dp_reshardable) survives a change of data parallelism
/// alone: dp with its replicas, cp, which shares like dp, and the order of the ranks; with modules,
/// of each by itself and wherever it stands. A module that one side lacks has to be named.
/// A forced template finds its objects only where the save emitted them for as many ranks; strict
/// modes that let absent keys pass are not told here.
std::optional<ExpectedRefusal> refusal_between(const IncarnationPlan& saved,
                                               const IncarnationPlan& loading);

/// False if some pipeline stage holds no layer and is neither the first nor the last: then its
/// ranks have nothing to compare.
bool every_rank_owns(const sim::Layout& layout, const std::string& model);
/// The same of a life; a rank that has a part of one module owns. `model` is that of a job without
/// modules.
bool every_rank_owns(const IncarnationPlan& plan, const std::string& model);

/// Ends the scenario at the first load that must be refused, if there is one, and writes its
/// expectation anew.
void expect_what_must_come(Scenario& scenario);

/// Members that are no longer one for each of the layout are left out: then they are 0, 1, ...
/// Modules that do not fit together are put side by side, unless they shared their ranks and can
/// share fewer or more.
void fit_members(Scenario& scenario);

/// State in buckets is kept tensor by tensor instead, so that any layout can load it.
void forget_buckets(IncarnationPlan& plan);

/// Each load has a checkpoint, and something is loaded.
bool makes_sense(const Scenario& scenario);

}  // namespace reprise::driver
