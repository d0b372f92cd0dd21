#pragma once
// Finds the groups of a job's modules, and the basis on which its ranks make the leaves of a save
// or a load.

#include <string_view>
#include <vector>

#include "sim/job/data/job_data.hpp"

namespace reprise::sim {

/// Metadata and groups of each module in a save or a load; the groups have the metadata's
/// dp_cp_group.
struct Basis {
  JobGroups groups;
  std::vector<ContentMetadata> metadata;

  void add(CheckpointGroups of_module, ContentMetadata told);
};

/// groups_for() and own_groups() return the job's own groups of each module, for keys of that form
/// or of the job's own form. given_groups() returns the groups that the job's saves and loads are
/// given.
JobGroups groups_for(const JobData& job, KeyForm keys);
JobGroups own_groups(const JobData& job);
JobGroups given_groups(const JobData& job);
/// Returns the basis with this job's own groups, which is the right one.
Basis own_basis(const JobData& job, KeyForm keys);
/// Collective over the world: resolves the given groups and lets all ranks agree on them. `common`
/// is the common state of the checkpoint to load.
Basis agreed_basis(const JobData& job, std::string_view caller, const JobGroups& given,
                   const Value* common);

}  // namespace reprise::sim
