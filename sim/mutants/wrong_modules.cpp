#include <algorithm>
#include <span>
#include <vector>

#include "core/base/codes.hpp"
#include "properties/finding_code.hpp"
#include "sim/job/model/host_rng.hpp"
#include "sim/mutants/asked.hpp"
#include "sim/mutants/registration.hpp"

namespace reprise::sim {
namespace {

// --- settings of a module's optimizer ------------------------------------------------------------

std::vector<ObjectLeaf> nothing_extracted(Dict& /*entry*/, const ChainPlace& /*place*/) {
  return {};
}

const Registration kMimoCommonRank0({
    "mimo-common-rank0",
    "The settings of every module's optimizer stay in the common state, which global rank 0 "
    "writes even if it does not own the module.",
    "ModulePolicy::extracted",
    "two modules on ranks of their own",
    {Code::kCommonStateDiverges, judged::kKeysetAsymmetry, passed_on::kWrapperMissing},
    [](Policies& policies) { policies.job.module.extracted = asked<nothing_extracted>; },
});

std::vector<ObjectLeaf> all_but_sharding(Dict& entry, const ChainPlace& place) {
  auto objects = extract_entry(entry, place);
  for (auto& object : objects) {
    if (object.key.ends_with(kShardingType)) entry.emplace_back(kShardingType, object.value);
  }
  std::erase_if(objects, [](const ObjectLeaf& leaf) { return leaf.key.ends_with(kShardingType); });
  return objects;
}

const Registration kMimoShardingTypeLost({
    "mimo-sharding-type-lost",
    "The sharding type of a module's optimizer state stays in the common state, which keeps "
    "only the modules of rank 0.",
    "ModulePolicy::extracted",
    "two modules on ranks of their own",
    {Code::kCommonStateDiverges, judged::kKeysetAsymmetry},
    [](Policies& policies) { policies.job.module.extracted = asked<all_but_sharding>; },
});

Sharding own_sharding(const ModuleConfig& own, const ModuleConfig& /*stored*/) {
  return own.optimizer_sharding;
}

const Registration kMimoShardingTypeLostStash({
    "mimo-sharding-type-lost/stash",
    "The sharding type is taken from the loading job's settings, not from the checkpoint.",
    "ModulePolicy::sharding",
    "a module that is loaded under another sharding",
    {Code::kLayoutMismatch, Code::kNotStored},
    [](Policies& policies) { policies.job.module.sharding = asked<own_sharding>; },
});

std::vector<ObjectLeaf> with_empty_wrapper(Dict& entry, const ChainPlace& place) {
  auto objects = extract_entry(entry, place);
  entry.emplace_back(kWrapper, Dict{});
  return objects;
}

/// If the module's entry in the common state lacks the key kWrapper, restores all objects except
/// those with parameter groups.
Value into_the_wrapper_that_is_there(Value entry, std::span<const ObjectLeaf> objects) {
  const bool there = entry.find(kWrapper) != nullptr;
  std::vector<ObjectLeaf> placed(objects.begin(), objects.end());
  if (!there) {
    std::erase_if(placed, [](const ObjectLeaf& leaf) { return leaf.key.ends_with(kParamGroups); });
  }
  return restore_entry(std::move(entry), placed);
}

const Registration kMimoShardingTypeLostWrapper({
    "mimo-sharding-type-lost/wrapper",
    "Each rank leaves an empty dict where the parameter groups were. The common state keeps "
    "only that of rank 0, and a load restores groups only where it finds the dict.",
    "ModulePolicy::extracted, restored",
    "two modules on ranks of their own",
    {Code::kCommonStateDiverges, passed_on::kWrapperMissing},
    [](Policies& policies) {
      policies.job.module.extracted = asked<with_empty_wrapper>;
      policies.job.module.restored = asked<into_the_wrapper_that_is_there>;
    },
});

const Registration kMimoShardingTypeLostWrapperNotMade({
    "mimo-sharding-type-lost/wrapper-not-made",
    "The empty dict is removed at save, and the load does not recreate it.",
    "ModulePolicy::restored",
    "any module",
    {passed_on::kWrapperMissing},
    [](Policies& policies) {
      policies.job.module.restored = asked<into_the_wrapper_that_is_there>;
    },
});

// --- copies --------------------------------------------------------------------------------------

/// Same as copy_of_module, but replaces one of the module's groups by a group of this rank alone.
std::int32_t copy_without(std::optional<Group> CheckpointGroups::*group,
                          const CheckpointGroups& given, GlobalRank self) {
  CheckpointGroups groups = given;
  groups.*group = Group({self});
  return copy_of_module(groups, self);
}

std::int32_t without_tp(const CheckpointGroups& groups, GlobalRank self) {
  return copy_without(&CheckpointGroups::tp, groups, self);
}

const Registration kMimoTpReplica({
    "mimo-tp-replica",
    "The replica id of a module's optimizer settings ignores the tensor-parallel rank, so every "
    "tp rank of the first stage has the main replica.",
    "ModulePolicy::copy",
    "a module with tp 2",
    {Code::kMultiWriter},
    [](Policies& policies) { policies.job.module.copy = asked<without_tp>; },
});

std::int32_t without_pp(const CheckpointGroups& groups, GlobalRank self) {
  return copy_without(&CheckpointGroups::pp, groups, self);
}

const Registration kMimoTpReplicaPp({
    "mimo-tp-replica/pp",
    "The replica id of a module's optimizer settings ignores the pipeline rank.",
    "ModulePolicy::copy",
    "a module with pp 2",
    {Code::kMultiWriter},
    [](Policies& policies) { policies.job.module.copy = asked<without_pp>; },
});

std::int32_t without_dp(const CheckpointGroups& groups, GlobalRank self) {
  return copy_without(&CheckpointGroups::dp_cp, groups, self);
}

const Registration kMimoTpReplicaDp({
    "mimo-tp-replica/dp",
    "The replica id of a module's optimizer settings ignores the data-parallel rank.",
    "ModulePolicy::copy",
    "a module with dp 2",
    {Code::kMultiWriter},
    [](Policies& policies) { policies.job.module.copy = asked<without_dp>; },
});

/// Uses Megatron's three-part id, (tp, pp, dp), even if the module has context parallelism.
std::int32_t without_cp(const CheckpointGroups& groups, GlobalRank self) {
  CheckpointGroups dp_alone = groups;
  dp_alone.dp_cp = groups.dp;
  return copy_of_module(dp_alone, self);
}

const Registration kMimoTpReplicaCp({
    "mimo-tp-replica/cp",
    "The replica id of a module's optimizer settings counts dp only, although the module also "
    "uses context parallelism.",
    "ModulePolicy::copy",
    "a module with cp 2",
    {Code::kMultiWriter},
    [](Policies& policies) { policies.job.module.copy = asked<without_cp>; },
});

// --- names ---------------------------------------------------------------------------------------

CheckpointGroups without_stream_prefix(const GroupCall& call) {
  CheckpointGroups groups = resolve(call);
  groups.rng_prefix.clear();
  return groups;
}

void name_streams_without_module(Policies& policies) {
  policies.job.save_groups = asked<without_stream_prefix>;
  policies.job.load_groups = asked<without_stream_prefix>;
}

const Registration kMimoRngDupkey({
    "mimo-rng-dupkey",
    "All modules save their random states under the same key, with coordinates in their own "
    "grids, so two modules claim the same shard.",
    "JobPolicy::save_groups, load_groups",
    "two modules",
    {judged::kKeysetAsymmetry, Code::kLayoutMismatch, Code::kMultiWriter},
    name_streams_without_module,
});

StateDict without_streams(StateDict state) {
  std::erase_if(state.objects, [](const ObjectLeaf& leaf) { return leaf.key.ends_with(kRngKey); });
  return state;
}

const Registration kMimoRngDupkeyNotSaved({
    "mimo-rng-dupkey/not-saved",
    "A workaround for mimo-rng-dupkey: random states are neither saved nor loaded.",
    "JobPolicy::saved, requested",
    "any job",
    {judged::kKeysetAsymmetry},
    [](Policies& policies) {
      policies.job.saved = asked<without_streams>;
      policies.job.requested = asked<without_streams>;
    },
});

std::string no_prefix(std::string_view /*module*/) { return {}; }

const Registration kMimoNoPrefix({
    "mimo-no-prefix",
    "Modules do not prefix the keys of their tensors and random states, so keys of two modules "
    "collide.",
    "ModulePolicy::prefix, JobPolicy::save_groups, load_groups",
    "two modules with keys in common",
    {judged::kKeysetAsymmetry, Code::kShapeDrift},
    [](Policies& policies) {
      policies.job.module.prefix = asked<no_prefix>;
      name_streams_without_module(policies);
    },
});

/// Reports the form "mixed" where "bare" is correct, as if it looked only at the keys of settings
/// and not at the keys of tensors.
std::optional<KeyForm> of_settings_alone(const Catalog& catalog) {
  const auto form = stored_form(catalog);
  return form == KeyForm::kBare ? KeyForm::kMixed : form;
}

const Registration kMimoBareKeysSettingsAlone({
    "mimo-bare-keys/settings-alone",
    "In a checkpoint with unprefixed keys, only the optimizer settings are found. Tensors, "
    "bucket objects and random states are still looked up with a prefix.",
    "ModulePolicy::form",
    "a checkpoint with unprefixed keys",
    {judged::kKeysetAsymmetry, Code::kNotStored},
    [](Policies& policies) { policies.job.module.form = asked<of_settings_alone>; },
});

std::optional<KeyForm> own_form(const Catalog& /*catalog*/) { return std::nullopt; }

const Registration kMimoBareKeys({
    "mimo-bare-keys",
    "The load looks for keys in the form that its own job writes (with or without a module "
    "prefix), whatever form the checkpoint has.",
    "ModulePolicy::form",
    "a checkpoint in the other form",
    {judged::kKeysetAsymmetry, Code::kNotStored, judged::kVerdictDisagreement},
    [](Policies& policies) { policies.job.module.form = asked<own_form>; },
});

std::string owner_of_prefixed(std::string_view key, std::span<const ModuleConfig> stored) {
  return key.starts_with("mimo.") ? owner_of(key, stored) : std::string();
}

const Registration kMimoBareKeysLeftBehind({
    "mimo-bare-keys/left-behind",
    "Only prefixed keys are recognized as leftovers of a removed module. Its unprefixed keys "
    "belong to no module, so the load refuses them instead of ignoring them.",
    "ModulePolicy::owner",
    "a checkpoint with unprefixed keys, and a module that was removed or is no longer trained",
    {Code::kNotRequested},
    [](Policies& policies) { policies.job.module.owner = asked<owner_of_prefixed>; },
});

CheckpointGroups of_the_registry(const LeafLayer& layer) {
  return layer.registry.groups(layer.key);
}

const Registration kLeafLayerGlobalGroups({
    "leaf-layer-global-groups",
    "A layer that is called without groups, such as a vision backbone or a state-space mixer, "
    "falls back to global groups that do not contain the module's ranks.",
    "ModulePolicy::leaf_layer",
    "a module that has such a layer and does not begin at rank 0",
    {passed_on::kGlobalFallback, Code::kLayoutMismatch},
    [](Policies& policies) { policies.job.module.leaf_layer = asked<of_the_registry>; },
});

bool whatever_grid(const StreamGrids& /*grids*/) { return true; }

const Registration kRngShardsAfterResize({
    "rng-shards-after-resize",
    "A rank requests random states by its own coordinates, even if they were saved on another "
    "grid.",
    "ModulePolicy::streams",
    "another tp or pp than in the checkpoint",
    {judged::kKeysetAsymmetry, Code::kNotStored, Code::kNotRequested},
    [](Policies& policies) { policies.job.module.streams = asked<whatever_grid>; },
});

/// Describes only this rank's stream, as if all ranks of the data-parallel group had the same
/// stream. Only the first rank's stream is then stored.
std::vector<ObjectLeaf> own_stream_alone(const RandomStates& states) {
  const auto own = static_cast<std::size_t>(rank_in(states.groups.dp_cp, states.self).value);
  const std::span<const HostRng> mine =
      states.host.size() > 1 ? states.host.subspan(own, 1) : states.host;
  return random_leaves({.host = mine,
                        .expert = states.expert,
                        .groups = states.groups,
                        .metadata = states.metadata,
                        .self = states.self});
}

const Registration kRngEpReplicaDp({
    "rng-ep-replica/dp",
    "Random states that are seeded differently on each data-parallel rank are marked as "
    "replicas of each other.",
    "JobPolicy::random",
    "dp 2, and random streams that differ by dp rank",
    {judged::kFalseReplica, Code::kLoadRejected},
    [](Policies& policies) { policies.job.random = asked<own_stream_alone>; },
});

// --- settings ------------------------------------------------------------------------------------

std::vector<GroupSettings> own_groups(const GroupMatch& match) { return match.own; }

const Registration kMimoOptimizerLoadSkipped({
    "mimo-optimizer-load-skipped",
    "The load fills the tensors of a module's optimizer but skips the call that restores its "
    "settings, so step counts restart at 0.",
    "SettingsPolicy::matched",
    "any job",
    {judged::kLostObject},
    [](Policies& policies) { policies.job.settings.matched = asked<own_groups>; },
});

std::vector<GroupSettings> by_position(const GroupMatch& match) {
  std::vector<GroupSettings> groups = match.stored;
  for (std::size_t g = 0; g < groups.size() && g < match.own.size(); ++g) {
    groups[g].params = match.own[g].params;
  }
  return groups;
}

const Registration kGroupsMatchedByPosition({
    "groups-matched-by-position",
    "The load matches parameter groups by position. If the job has them in another order, each "
    "group gets another group's settings.",
    "SettingsPolicy::matched",
    "parameter groups in another order than in the checkpoint",
    {judged::kLostObject, passed_on::kStaleDerived},
    [](Policies& policies) { policies.job.settings.matched = asked<by_position>; },
});

std::vector<GroupSettings> with_params(std::vector<GroupSettings> groups) { return groups; }

const Registration kPerRankListInCommon({
    "per-rank-list-in-common",
    "Saved parameter groups keep their lists of parameter indices, which differ by pipeline "
    "stage, in the common state, which must be the same on all ranks.",
    "SettingsPolicy::saved",
    "stages with different numbers of parameters",
    {Code::kCommonStateDiverges, judged::kFalseReplica},
    [](Policies& policies) { policies.job.settings.saved = asked<with_params>; },
});

std::vector<GroupSettings> with_stored_params(const GroupMatch& match) {
  auto groups = matched_by_identifier(match);
  for (auto& group : groups) group.params.clear();
  return groups;
}

const Registration kPerRankListInCommonAtLoad({
    "per-rank-list-in-common/at-load",
    "The load takes the parameter indices from the checkpoint, which does not contain them, so "
    "the optimizer updates nothing.",
    "SettingsPolicy::matched",
    "any job",
    {judged::kStaleBytes, passed_on::kStaleDerived, judged::kTrajectoryDivergence},
    [](Policies& policies) { policies.job.settings.matched = asked<with_stored_params>; },
});

Schedule sum_of_schedules(const Schedule& own, const Schedule& stored) {
  Schedule sum = stored;
  sum.num_steps += own.num_steps;
  return sum;
}

const Registration kScheduleCountedTwice({
    "schedule-counted-twice",
    "The load adds the stored sample count to the schedule's own, so a second load in one "
    "process doubles it.",
    "SettingsPolicy::schedule",
    "two loads in one process, or a load after training",
    {judged::kScheduleDrift, judged::kTrajectoryDivergence},
    [](Policies& policies) { policies.job.settings.schedule = asked<sum_of_schedules>; },
});

Schedule twice_the_stored(const Schedule& /*own*/, const Schedule& stored) {
  return sum_of_schedules(stored, stored);
}

const Registration kScheduleCountedTwiceAtLoad({
    "schedule-counted-twice/at-load",
    "The load sets the stored sample count and then adds it again, so the learning rate jumps "
    "ahead on its schedule.",
    "SettingsPolicy::schedule",
    "any job",
    {judged::kScheduleDrift, judged::kTrajectoryDivergence},
    [](Policies& policies) { policies.job.settings.schedule = asked<twice_the_stored>; },
});

// --- steps ---------------------------------------------------------------------------------------

bool overflows_here(std::span<const ModuleStep> own) {
  return std::any_of(own.begin(), own.end(), [](const auto& module) { return module.overflow; });
}

/// All ranks exchange their overflows, but each rank then decides only by the overflows of its own
/// modules.
StepAgreement decided_by_each(Communicator& world, std::span<const ModuleStep> own) {
  StepAgreement agreed;
  agree_on_overflow(world, own, agreed);
  agree_on_statistics(world, own, agreed);
  agreed.overflow = overflows_here(own);
  return agreed;
}

bool updated_here(Communicator& world, bool own) {
  all_have_stepped(world, own);
  return own;
}

const Registration kMimoStepConsensus({
    "mimo-step-consensus",
    "Each module decides from its own gradients whether to take a step. After an overflow in "
    "one module, their schedules and step counts differ.",
    "StepPolicy::agree, success",
    "two modules on ranks of their own, and an overflow in one of them",
    {Code::kCommonStateDiverges, judged::kScheduleDrift, judged::kTrajectoryDivergence},
    [](Policies& policies) {
      policies.job.step.agree = asked<decided_by_each>;
      policies.job.step.success = asked<updated_here>;
    },
});

/// A rank with an overflow skips the collective reduction of the norms, although the other ranks
/// enter it.
StepAgreement returned_early(Communicator& world, std::span<const ModuleStep> own) {
  StepAgreement agreed;
  std::vector<ModuleStep> finite(own.begin(), own.end());
  for (auto& module : finite) module.overflow = false;
  agree_on_overflow(world, finite, agreed);
  agreed.overflow = overflows_here(own);
  if (!agreed.overflow) agree_on_statistics(world, own, agreed);
  return agreed;
}

const Registration kFoundInfNotReduced({
    "found-inf-not-reduced",
    "A module whose gradients overflow skips the step immediately, while the other ranks wait "
    "for it in the reduction of the gradient norm.",
    "StepPolicy::agree",
    "two modules on ranks of their own, and an overflow in one of them",
    {Code::kCollectiveMismatch, passed_on::kHang},
    [](Policies& policies) { policies.job.step.agree = asked<returned_early>; },
});

}  // namespace
}  // namespace reprise::sim
