#include "sim/job/data/policy.hpp"

#include "core/agree/agreement.hpp"
#include "core/base/codes.hpp"
#include "reprise/error.hpp"

namespace reprise::sim {
namespace {

void check_master(const LocalParameter& parameter, std::size_t p, const OptimizerShard& optimizer) {
  const auto index = optimizer.first_stale(parameter.spec, p);
  if (!index) return;
  throw Error(passed_on::kStaleDerived,
              "the stored weight at " + to_string(*index) +
                  " is not the stored fp32 master rounded to bf16; one of the two is of another "
                  "step or place",
              {.key = parameter.spec.key});
}

void check_masters(Family& family) {
  for (std::size_t p = 0; p < family.parameters.size(); ++p) {
    check_master(family.parameters[p], p, *family.optimizer);
  }
}

void convert(Family& family) {
  if (!family.foreign) return;
  family.optimizer->take_slots(family.parameters, *family.foreign, *family.group);
  family.foreign.reset();
}

void install_own(Family& family) { family.optimizer->install_stored(family.parameters); }

void gather(Family& family) { family.optimizer->gather_weights(family.parameters, *family.group); }

}  // namespace

std::vector<RefreshStep> refresh_protocol(const Loaded& loaded) {
  return {
      {"convert", [loaded] { loaded.for_each_family(convert); }},
      {"check_masters",
       [loaded] {
         agree_on(loaded.world, [loaded] {
           loaded.for_each_family(check_masters);
           return Bytes{};
         });
       }},
      {"install_own", [loaded] { loaded.for_each_family(install_own); }},
      {"gather", [loaded] { loaded.for_each_family(gather); }},
  };
}

StateDict whole_state(StateDict state) { return state; }

Description describe(const Holding& holding) {
  Description description{.key = holding.spec.key, .shape = holding.spec.shape};
  description.pieces = pieces_packed(holding.tensor, holding.boxes);
  description.replica = holding.replica;
  if (!holding.flat && holding.spec.fused.components == 1) {
    description.placed = Placed{holding.mesh, holding.placement};
  }
  return description;
}

std::int32_t replica_of(const Placement& placement, const Mesh& mesh, GroupRank member) {
  return placement.replica(mesh, member);
}

std::vector<ObjectLeaf> random_leaves(const RandomStates& states) {
  using Axes = std::initializer_list<const std::optional<Group>*>;
  const CheckpointGroups& groups = states.groups;
  const auto leaf = [&](std::string_view key, std::span<const HostRng> rng, const Axes& axes,
                        const std::optional<Group>& copies) {
    ObjectLeaf made{.key = groups.rng_prefix + std::string(key), .value = encode(rng)};
    for (const auto* axis : axes) {
      made.coordinate.push_back(rank_in(*axis, states.self).value);
      made.grid.push_back((*axis)->size());
    }
    made.replica = rank_in(copies, states.self).value;
    return made;
  };
  std::vector<ObjectLeaf> leaves = {
      leaf(kRngKey, states.host, {&groups.pp, &groups.tp}, states.metadata.dp_cp_group)};
  if (states.expert != nullptr) {
    leaves.push_back(leaf(kExpertRngKey, {states.expert, 1},
                          {&groups.expt_pp, &groups.ep, &groups.expt_tp}, groups.expt_dp));
  }
  return leaves;
}

CheckpointGroups groups_it_is_given(const LeafLayer& layer) { return layer.given; }

Schedule stored_schedule(const Schedule& /*own*/, const Schedule& stored) { return stored; }

Sharding sharding_of_checkpoint(const ModuleConfig& /*own*/, const ModuleConfig& stored) {
  return stored.optimizer_sharding;
}

bool same_streams(const StreamGrids& grids) {
  if (grids.of_experts) return same_expert_streams(grids.stored, grids.own);
  return same_dense_streams(grids.stored, grids.own, grids.by_dp);
}

std::byte* where_it_is(std::byte* data, std::span<const Moved> /*moved*/) { return data; }

Group all_holders(const Group& holders) { return holders; }

std::uint64_t common_seed(std::uint64_t seed, const Mesh&, GroupRank) { return seed; }

}  // namespace reprise::sim
