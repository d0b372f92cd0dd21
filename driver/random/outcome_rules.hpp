#pragma once
// Derives the expected outcome of a scenario from the requirements, not from the job.

#include <optional>
#include <string>

#include "driver/language/scenario.hpp"

namespace reprise::driver {

struct ExpectedRefusal {
  Code code = Code::kInternal;
  std::string says;

  friend bool operator==(const ExpectedRefusal&, const ExpectedRefusal&) = default;
};

/// Returns why a checkpoint saved under `saved` must be refused under `loading`; nothing if it must
/// load. Optimizer state in buckets (dp_reshardable) survives only changes of data parallelism: of
/// dp with its replicas, of cp, which shards like dp, and of the rank order; with modules, of each
/// module and its place. The load must name a module that one side lacks. A forced template finds
/// its objects only if the save wrote them for the same number of ranks. Strict modes that tolerate
/// absent keys are not covered.
std::optional<ExpectedRefusal> refusal_between(const IncarnationPlan& saved,
                                               const IncarnationPlan& loading);

/// False if some pipeline stage has no layer and is neither the first nor the last: its ranks then
/// have nothing to compare.
bool every_rank_owns(const sim::Layout& layout, const std::string& model);
/// Applies the same rule to a life: a rank owns something if it has part of any module. `model` is
/// the model of a job without modules.
bool every_rank_owns(const IncarnationPlan& plan, const std::string& model);

/// Ends the scenario at the first load that must be refused, if there is one, and updates its
/// expectation.
void expect_what_must_come(Scenario& scenario);

/// Drops the members if they do not match the layout one to one: they are then 0, 1, ... Puts
/// modules that do not fit together side by side, unless they shared their ranks and can share
/// fewer or more.
void fit_members(Scenario& scenario);

/// Returns the modules of a life; a job that is one model has one without a name.
std::vector<sim::ModuleConfig> modules_of(const IncarnationPlan& plan);

/// Changes bucket state to fully_reshardable, so that any layout can load it.
void forget_buckets(IncarnationPlan& plan);

/// True if each load has a checkpoint and there is at least one load.
bool makes_sense(const Scenario& scenario);

}  // namespace reprise::driver
