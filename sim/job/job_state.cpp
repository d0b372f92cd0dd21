#include "sim/job/job_state.hpp"

#include <algorithm>
#include <utility>

#include "reprise/error.hpp"
#include "sim/job/bucket_leaves.hpp"
#include "sim/job/data/job_groups.hpp"
#include "sim/job/data/state_parts.hpp"
#include "sim/job/extra_tensor.hpp"
#include "sim/job/module_leaves.hpp"
#include "sim/job/rerun_checkpoint.hpp"

namespace reprise::sim {
namespace {

/// Adds to the common state those parts of an optimizer's entry that are not stored as objects.
void leave_in_common(Value& common, const std::string& module, std::size_t chain, Dict rest) {
  if (rest.empty()) return;
  auto* root = common.as<Dict>();
  const auto level = [](Dict& dict, const Value& key) -> Dict& {
    auto found = std::find_if(dict.begin(), dict.end(),
                              [&key](const auto& entry) { return entry.first == key; });
    if (found == dict.end()) found = dict.insert(dict.end(), {key, Dict{}});
    return *found->second.as<Dict>();
  };
  Dict& of_module = level(level(*root, kOptimizerOfModules), module);
  of_module.emplace_back(static_cast<std::int64_t>(chain), std::move(rest));
}

Bytes wire_of(const HostRng& rng) {
  Bytes wire;
  for (const auto& stream : {rng.host, rng.device, rng.tracker}) {
    for (const auto number : {stream.seed, stream.counter, stream.tally}) append_le(wire, number);
  }
  return wire;
}

HostRng rng_of(ByteSpan wire) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  const auto word = [&](std::size_t i) {
    return load_le<std::uint64_t>(wire.subspan(i * kWord, kWord));
  };
  const auto stream = [&](std::size_t first) {
    return RandomStream{word(first), word(first + 1), word(first + 2)};
  };
  return {stream(0), stream(3), stream(6)};
}

Value common_of(const JobData& job, const JobPolicy& policy, const Basis& basis,
                const SaveParts& parts = {}) {
  CommonState state{.progress = job.progress,
                    .modules = job.all_modules,
                    .identity = {job.config.identity.run, job.parent_step,
                                 job.config.identity.engine, optional_keys(job)},
                    .parts = parts,
                    .dp_cp_group = basis.metadata.front().dp_cp_group};
  if (state.is_one_model()) {
    state.optimizer = job.modules.front().families.front().settings;
    state.optimizer.groups = policy.settings.saved(std::move(state.optimizer.groups));
  }
  return encode(state, policy.metadata.written);
}

StateDict module_leaves(const JobData& job, const Making& making, Value& common) {
  Module& module = making.module;
  const ModuleLeaves leaves(job, making);
  const Sharding sharding = module.config.optimizer_sharding;
  const bool with_optimizer = making.parts.optimizer && !module.config.frozen;
  StateDict tensors;
  if (sharding == Sharding::kFsdpDtensor) {
    for (auto& family : module.families) {
      family.optimizer->pack_stored(family.parameters);
      leaves.add_stored(tensors, family, &JobPolicy::described_save);
    }
  } else {
    leaves.add_weights(tensors);
  }
  for (auto& family : module.families) {
    if (!with_optimizer) break;
    if (sharding == Sharding::kDpReshardable) {
      add_buckets(tensors, family, *family.optimizer);
    } else {
      leaves.add_slots(tensors, family, sharding, &JobPolicy::described_save);
    }
  }
  put_before(making.keys.before, tensors);
  StateDict others;
  if (with_optimizer && !module.is_whole_job()) {
    for (const auto& family : module.families) {
      leave_in_common(common, module.config.name, family.chain,
                      leaves.add_settings(others, family, sharding));
    }
  }
  if (making.parts.random) leaves.add_random(others);
  append(tensors, std::move(others));
  return tensors;
}

StateDict leaves(JobData& job, const JobPolicy& policy, const Basis& basis,
                 const SaveParts& parts) {
  StateDict state;
  state.common = common_of(job, policy, basis, parts);
  for (std::size_t m = 0; m < job.modules.size(); ++m) {
    append(state,
           module_leaves(job, making_of(job, policy, m, basis, job.config.checkpoint.keys, parts),
                         state.common));
  }
  add_extra(job, state);
  add_rerun(job, state, policy);
  return state;
}

void gather_streams(JobData& job) {
  for (auto& module : job.modules) {
    if (!module.dp_cp) continue;
    const auto all = module.dp_cp->all_gather(wire_of(module.streams.host));
    for (std::size_t r = 0; r < all.size(); ++r) module.streams_over_dp[r] = rng_of(all[r]);
  }
}

}  // namespace

StateDict saved_state(JobData& job, const JobGroups& given, const SaveParts& parts) {
  if (parts.optimizer) require_tellable(job.config.checkpoint.keys, job.all_modules);
  const Basis basis = agreed_basis(job, GroupCaller::kSave, given, nullptr);
  gather_streams(job);
  StateDict state = job.policy.saved(leaves(job, job.policy, basis, parts));
  for (auto& leaf : state.tensors) leaf.data = job.policy.storage(leaf.data, job.moved);
  return state;
}

StateDict live_state(JobData& job, const SaveParts& parts) {
  return leaves(job, {}, own_basis(job, job.config.checkpoint.keys), parts);
}

StateDict model_space(JobData& job) {
  const JobPolicy policy;
  const Basis basis = own_basis(job, KeyForm::kPrefixed);
  StateDict state;
  state.common = common_of(job, policy, basis);
  for (std::size_t m = 0; m < job.modules.size(); ++m) {
    Making right = making_of(job, policy, m, basis, KeyForm::kPrefixed);
    right.model_space = true;
    right.keys.within = right.module.prefix();
    const ModuleLeaves leaves(job, right);
    leaves.add_weights(state);
    for (auto& family : right.module.families) {
      if (right.module.config.frozen) continue;
      leaves.add_slots(state, family, Sharding::kFullyReshardable, &JobPolicy::described_save);
      if (!right.module.is_whole_job())
        leaves.add_settings(state, family, Sharding::kFullyReshardable);
    }
    leaves.add_random(state);
  }
  // Removes objects that contain the name of the sharding, because they describe a checkpoint and
  // not the model.
  std::erase_if(state.objects,
                [](const ObjectLeaf& leaf) { return leaf.key.ends_with(kShardingType); });
  return state;
}

}  // namespace reprise::sim
