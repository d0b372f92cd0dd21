#pragma once
// Derives the expected outcome of a scenario from the requirements. Does not use the job's code,
// because the scenarios test that code.

#include <optional>
#include <string>

#include "driver/language/scenario.hpp"

namespace reprise::driver {

struct ExpectedRefusal {
  Code code = Code::kInternal;
  std::string says;

  friend bool operator==(const ExpectedRefusal&, const ExpectedRefusal&) = default;
};

/// Returns the reason why `loading` must refuse a checkpoint that `saved` wrote; nothing if
/// `loading` must load the checkpoint. The rules, module by module:
///
/// - Optimizer state in buckets (dp_reshardable) allows changes of dp and its replicas, of cp
///   (which shards like dp) and of the rank order. Any other change of the layout is refused.
/// - A module that only one of the two jobs has is refused, unless the load names it.
/// - A forced template is refused, unless the save wrote its objects for the same number of ranks.
///
/// Does not cover strict modes that tolerate absent keys.
std::optional<ExpectedRefusal> refusal_between(const LifePlan& saved, const LifePlan& loading);

/// True if every rank has something to compare. The ranks of a pipeline stage have nothing if the
/// stage has no layer and is neither the first nor the last.
bool every_rank_owns(const sim::Layout& layout, const std::string& model);
/// True if every rank of the life has something to compare. In a job with modules, it is enough
/// that each rank owns part of one module. Otherwise, `model` is the job's model.
bool every_rank_owns(const LifePlan& plan, const std::string& model);

/// Sets the scenario's expectation to the required outcome. If some load must be refused, the life
/// with the first such load becomes the last life.
void expect_what_must_come(Scenario& scenario);

/// Repairs the ranks of each life. If the number of listed members does not fit the layout, the
/// members become 0, 1, ... If modules do not fit together, they get separate ranks, one module
/// after the other. But if the modules had the same ranks before and their sizes are still equal,
/// they get common ranks again.
void fit_members(Scenario& scenario);

/// Returns the modules of a life. A job that is one model counts as one module without a name.
std::vector<sim::ModuleConfig> modules_of(const LifePlan& plan);

/// Replaces bucket shardings by fully_reshardable, so that any layout can load the state.
void forget_buckets(LifePlan& plan);

/// True if the scenario has a load, and each load finds a checkpoint to load.
bool makes_sense(const Scenario& scenario);

}  // namespace reprise::driver
