#pragma once
// The groups of a job's modules, and the basis on which its ranks make the leaves of a save or a
// load.

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

/// Return the groups of each module: the job's own, for keys of that form or of its own; and those
/// that its saves and loads are given.
JobGroups groups_for(const JobData& job, KeyForm keys);
JobGroups own_groups(const JobData& job);
JobGroups given_groups(const JobData& job);
/// Uses this job's own groups, as is right.
Basis own_basis(const JobData& job, KeyForm keys);
/// Collective over the world: resolves the given groups and agrees on them with all ranks; `common`
/// is the common state of the checkpoint to load.
Basis agreed_basis(const JobData& job, std::string_view caller, const JobGroups& given,
                   const Value* common);

}  // namespace reprise::sim
