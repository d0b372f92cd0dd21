#pragma once
// Finds the groups and the metadata of a job's modules. A Basis contains both; ranks need it to
// describe the leaves of a save or a load.

#include <vector>

#include "sim/job/data/job_data.hpp"

namespace reprise::sim {

/// Groups and metadata of each module in a save or a load. `groups` and `metadata` have the same
/// dp_cp_group.
struct Basis {
  JobGroups groups;
  std::vector<ContentMetadata> metadata;

  void add(CheckpointGroups of_module, ContentMetadata told);
};

/// groups_for() derives the groups of this rank's modules from their meshes. `keys` is the form of
/// the keys of random states. own_groups() does the same for the form that the job uses.
/// given_groups() returns the groups that the job passes to its saves and loads.
JobGroups groups_for(const JobData& job, KeyForm keys);
JobGroups own_groups(const JobData& job);
JobGroups given_groups(const JobData& job);
/// Returns the basis on which judges compare jobs. It always has the job's own groups, even if
/// the job's saves and loads are given other groups.
Basis own_basis(const JobData& job, KeyForm keys);
/// Collective over the world. Returns the groups in `given`, completed from the registry, and the
/// modules' metadata. All ranks agree on the groups. `common` is the common state of the checkpoint
/// to load.
Basis agreed_basis(const JobData& job, GroupCaller caller, const JobGroups& given,
                   const Value* common);

}  // namespace reprise::sim
