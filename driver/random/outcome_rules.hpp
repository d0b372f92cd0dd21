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

/// Returns the reason why `loading` must refuse a checkpoint that `saved` wrote; nothing if it must
/// load it. The rules, module by module:
///
/// - Optimizer state in buckets (dp_reshardable) allows changes of dp and its replicas, of cp
///   (which shards like dp) and of the rank order. Any other change of the layout is refused.
/// - A module that one side lacks is refused, unless the load names it.
/// - A forced template is refused, unless the save wrote its objects for the same number of ranks.
///
/// Does not cover strict modes that tolerate absent keys.
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

/// Repairs the ranks of each life. If its list of members does not have one rank for each place of
/// the layout, the members become 0, 1, ... If modules do not fit together, they are put side by
/// side; modules that all had the same ranks stay on common ranks if their sizes are still equal.
void fit_members(Scenario& scenario);

/// Returns the modules of a life; a job that is one model has one without a name.
std::vector<sim::ModuleConfig> modules_of(const IncarnationPlan& plan);

/// Replaces bucket shardings by fully_reshardable, so that any layout can load the state.
void forget_buckets(IncarnationPlan& plan);

/// True if each load has a checkpoint and there is at least one load.
bool makes_sense(const Scenario& scenario);

}  // namespace reprise::driver
