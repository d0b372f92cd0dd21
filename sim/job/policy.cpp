#include "sim/job/policy.hpp"

#include "core/base/error.hpp"
#include "core/engine/agreement.hpp"

namespace reprise::sim {
namespace {

void check_master(const LocalParameter& parameter, std::size_t p, OptimizerShard& optimizer) {
  const auto begin = static_cast<std::size_t>(optimizer.share(p).begin);
  const float* master = optimizer.slot(Slot::kMaster).data() + begin;
  const std::uint16_t* stored = optimizer.stored().data() + begin;
  const Dims& shape = parameter.spec.shape;
  for_each_run(shape, optimizer.packed(p), optimizer.packed(p),
               [&](std::int64_t global, std::size_t own, std::size_t, std::int64_t count) {
                 for (std::int64_t i = 0; i < count; ++i, ++own) {
                   if (to_bf16(master[own]) == stored[own]) continue;
                   throw Error(Code::kStaleDerived,
                               "the stored weight at " + to_string(index_at(global + i, shape)) +
                                   " is not the stored fp32 master rounded to bf16; one of the "
                                   "two is of another step or place",
                               {.key = parameter.spec.key});
                 }
               });
}

void check_masters(std::span<Family> families) {
  for (auto& family : families) {
    for (std::size_t p = 0; p < family.parameters.size(); ++p) {
      check_master(family.parameters[p], p, *family.optimizer);
    }
  }
}

void convert(std::span<Family> families) {
  for (auto& family : families) {
    if (!family.foreign) continue;
    family.optimizer->take_slots(family.parameters, *family.foreign, *family.group);
    family.foreign.reset();
  }
}

void install_own(std::span<Family> families) {
  for (auto& family : families) family.optimizer->install_stored(family.parameters);
}

void gather(std::span<Family> families) {
  for (auto& family : families) family.optimizer->gather_weights(family.parameters, *family.group);
}

}  // namespace

std::vector<RefreshStep> refresh_protocol(const Loaded& loaded) {
  return {
      {"convert", [loaded] { convert(loaded.families); }},
      {"check_masters",
       [loaded] {
         agree_on(loaded.world, [loaded] {
           check_masters(loaded.families);
           return Bytes{};
         });
       }},
      {"install_own", [loaded] { install_own(loaded.families); }},
      {"gather", [loaded] { gather(loaded.families); }},
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
  const auto leaf = [&](std::string_view key, const HostRng& rng, const Axes& axes,
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
    leaves.push_back(leaf(kExpertRngKey, *states.expert,
                          {&groups.expt_pp, &groups.ep, &groups.expt_tp}, groups.expt_dp));
  }
  return leaves;
}

Group all_holders(const Group& holders) { return holders; }

std::uint64_t common_seed(std::uint64_t seed, const Mesh&, GroupRank) { return seed; }

}  // namespace reprise::sim
