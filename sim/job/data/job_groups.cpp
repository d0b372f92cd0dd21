#include "sim/job/data/job_groups.hpp"

#include <utility>

#include "reprise/error.hpp"

namespace reprise::sim {

JobGroups groups_for(const JobData& job, KeyForm keys) {
  JobGroups all;
  for (const auto& module : job.modules) {
    all.push_back(groups_of(*module.dense_mesh, *module.expert_mesh, job.rank));
    all.back().rng_prefix =
        job.config.checkpoint.rng_prefix + keys_of(keys, module.config.name).streams;
  }
  return all;
}

JobGroups own_groups(const JobData& job) { return groups_for(job, job.config.checkpoint.keys); }

JobGroups given_groups(const JobData& job) {
  JobGroups all = own_groups(job);
  for (auto& given : all) {
    for (std::size_t g = 0; g < kGroupNames.size(); ++g) {
      if (job.config.groups.source.lacks.test(g)) (given.*kGroupNames.at(g).group).reset();
    }
  }
  return all;
}

void Basis::add(CheckpointGroups of_module, ContentMetadata told) {
  of_module.dp_cp = told.dp_cp_group;
  groups.push_back(std::move(of_module));
  metadata.push_back(std::move(told));
}

Basis own_basis(const JobData& job, KeyForm keys) {
  Basis basis;
  const JobGroups own = groups_for(job, keys);
  for (std::size_t m = 0; m < job.modules.size(); ++m) {
    const ModuleConfig& module = job.modules[m].config;
    const GroupRegistry registry(module.layout, job.rank, RegistryUse::kForbidden);
    basis.add(own[m], built_metadata({GroupCaller::kJudge, module, own[m], registry, job.rank}));
  }
  return basis;
}

Basis agreed_basis(const JobData& job, GroupCaller caller, const JobGroups& given,
                   const Value* common) {
  CHECK(given.size() == job.modules.size(), given.size(), job.modules.size());
  const bool loads = caller == GroupCaller::kLoad;
  const auto choose = loads ? job.policy.load_groups : job.policy.save_groups;
  const JobGroups own = own_groups(job);
  Basis basis;
  const std::vector<GroupIdeas> ideas = gather_groups(*job.world, [&] {
    std::vector<GroupClaim> claims;
    for (std::size_t m = 0; m < job.modules.size(); ++m) {
      const Module& module = job.modules[m];
      const GroupRegistry registry(module.config.layout, job.rank, job.config.groups.fallback);
      const CheckpointGroups chosen =
          choose({caller, given[m], registry, job.rank, module.model.has_experts()});
      const MetadataCall call{caller, module.config, chosen, registry, job.rank};
      basis.add(chosen,
                loads ? job.policy.metadata.loaded(common, call) : job.policy.metadata.built(call));
      for (auto& claim : claims_of(basis.groups[m], own[m], module.prefix())) {
        claims.push_back(std::move(claim));
      }
    }
    return claims;
  });
  job.policy.groups(ideas);
  return basis;
}

}  // namespace reprise::sim
