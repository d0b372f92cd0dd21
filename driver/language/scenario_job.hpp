#pragma once
// Describes `job` and `restart` of a scenario file: the ranks, layouts and modules of each life.

#include "driver/language/scenario.hpp"
#include "driver/yaml/rows.hpp"

namespace reprise::driver {

const Rows<Scenario>& optimizer_rows();
/// Keys of the job that no restart can change.
const Rows<Scenario>& job_rows();
/// Keys of the job or of a restart; in a restart each keeps the value of the life before. If one
/// life has an unusual one, all are written for all lives.
const Rows<LifePlan>& life_rows();
/// The same for the forms of keys and parameter groups, which differ between versions of Megatron.
const Rows<LifePlan>& form_rows();
/// Keys of a restart alone, beside load_rows().
const Rows<LifePlan>& restart_rows();

/// Adds the first life. Throws the USAGE errors of YamlMap, as do the functions below.
void read_job(YamlMap job, Scenario& scenario);
/// Returns the next life without its actions. A key that is absent keeps the value of the
/// previous life.
LifePlan read_restart(YamlMap restart, const Scenario& scenario);
LifePlan like_the_last(const Scenario& scenario);

}  // namespace reprise::driver
