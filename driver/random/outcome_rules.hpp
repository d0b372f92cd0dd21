#pragma once
// Derives the expected outcome of a scenario from the requirements alone, not from the job.

#include <optional>
#include <string>

#include "driver/language/scenario.hpp"

namespace reprise::driver {

struct ExpectedRefusal {
  Code code = Code::kInternal;
  std::string says;

  friend bool operator==(const ExpectedRefusal&, const ExpectedRefusal&) = default;
};

/// Returns why a checkpoint saved by `saved` must be refused by `loading`; nothing if it must load.
/// Optimizer state in buckets (dp_reshardable) survives only changes of data parallelism: of dp
/// with its replicas, of cp, which shards like dp, and of the rank order. With modules, this holds
/// for each module and its place. A load must name the modules that one side lacks. A forced
/// template finds its objects only if the save wrote them for the same number of ranks. Strict
/// modes that tolerate absent keys are not covered.
std::optional<ExpectedRefusal> refusal_between(const IncarnationPlan& saved,
                                               const IncarnationPlan& loading);

/// False if some pipeline stage has no layer and is neither the first nor the last, because its
/// ranks then have nothing to compare.
bool every_rank_owns(const sim::Layout& layout, const std::string& model);
/// Does the same for a life, in which a rank owns something if it has part of any module. `model`
/// is the model of a job without modules.
bool every_rank_owns(const IncarnationPlan& plan, const std::string& model);

/// If some load must be refused, ends the scenario at the first one. Updates the scenario's
/// expectation.
void expect_what_must_come(Scenario& scenario);

/// Drops the members if they do not match the layout one to one, so that they are 0, 1, ... Puts
/// modules that do not fit together side by side; if they shared their ranks and can share fewer or
/// more, they stay together.
void fit_members(Scenario& scenario);

/// Returns the modules of a life; a job that is one model has one without a name.
std::vector<sim::ModuleConfig> modules_of(const IncarnationPlan& plan);

/// Replaces bucket shardings by fully_reshardable, so that any layout can load the state.
void forget_buckets(IncarnationPlan& plan);

/// True if each load has a checkpoint and there is at least one load.
bool makes_sense(const Scenario& scenario);

}  // namespace reprise::driver
