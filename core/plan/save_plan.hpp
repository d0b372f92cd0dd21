#pragma once
// Which rank writes which boxes. Pure: every rank computes the same global plan from the same
// offers.
//
//   2 x 2 example: w [4, 6], tp splits dimension 0, dp holds replicas;
//   boxes T = [0:2, 0:6] and B = [2:4, 0:6]
//
//     rank 0 (tp 0, dp 0) offers T, replica 0      owner of T: rank 0 or 2, whoever has less to
//     rank 1 (tp 1, dp 0) offers B, replica 0                  write
//     rank 2 (tp 0, dp 1) offers T, replica 1      owner of B: rank 1 or 3
//     rank 3 (tp 1, dp 1) offers B, replica 1

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/plan/cover.hpp"
#include "core/plan/given_offers.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/mesh.hpp"

namespace reprise {

/// A tensor whose boxes and replica ids follow from a placement, for every member of its mesh.
struct PlacedOffer {
  TensorForm form;
  std::uint32_t placed = 0;  ///< index into PlacedOffers::placements
};

/// What does not depend on who offers it, so ranks that stand alike in their meshes have equal ones
/// and share them.
struct PlacedOffers {
  std::vector<Placed> placements;  ///< distinct
  std::vector<PlacedOffer> tensors;
};

struct ObjectOffer {
  std::string key;  ///< with coordinate and grid: "rng_state/shard_0.1_2.4"
  std::int32_t replica = 0;
};

/// What one rank offers to write, each list sorted by key; no payload.
struct LocalPlan {
  std::shared_ptr<const PlacedOffers> placed = std::make_shared<const PlacedOffers>();
  GivenOffers given;
  std::vector<ObjectOffer> objects;
  std::uint64_t common_digest = 0;  ///< of the common state; must be equal on all ranks
};

/// Rules by which placements are described and proved.
struct PlanRules {
  /// How a placement is described to the plan; must be the rule by which the job slices.
  ChunkRule describe = ceil_chunk;
  /// Returns why boxes that no placement explains do not tile the tensor, if they do not.
  std::optional<CoverDefect> (*cover)(const Dims& shape, std::span<const Box> boxes) = prove_cover;
};

/// Which of the candidates (group ranks, ascending) writes a box: the least loaded, then the
/// lowest. `load[r]` are the bytes that rank r has so far.
GroupRank elect_least_loaded(std::span<const GroupRank> candidates,
                             std::span<const std::uint64_t> load);

/// What `self` offers. A leaf is offered as placed if its only box and its replica id are those
/// that its placement gives to `self`. Throws LAYOUT_MISMATCH if `self` is no member of a leaf's
/// mesh.
LocalPlan local_plan(const StateDict& state, GlobalRank self, const PlanRules& rules = {});

/// For the wire. decode throws TORN_FILE on anything malformed.
Bytes encode(const LocalPlan& plan);
LocalPlan decode_local_plan(ByteSpan bytes);
/// Of all ranks; equal PlacedOffers become one.
std::vector<LocalPlan> decode_local_plans(std::span<const Bytes> wires);

/// Hash of everything in a rank's plan: keys, shapes, dtypes, boxes, replica ids, placements; not
/// of the common state's content.
std::uint64_t signature(const LocalPlan& plan);
std::uint64_t signature(const Placed& placed);
/// Of parts that ranks share; and of a plan whose parts' signatures are known.
std::uint64_t signature(const PlacedOffers& offers);
std::uint64_t signature(const std::vector<TensorForm>& forms);
std::uint64_t signature(const LocalPlan& plan, std::uint64_t placed, std::uint64_t forms);

/// Owner of a box that nobody is to write.
inline constexpr GroupRank kNobody{-1};

/// A tensor's chunks are `boxes`; chunk i is written by owners[i].
struct PlannedTensor {
  std::string key;
  DType dtype = DType::kFloat32;
  Dims shape;
  /// Sorted; empty only if it is alone. Tensors of one shape and placement share them.
  std::shared_ptr<const std::vector<Box>> boxes;
  std::vector<GroupRank> owners;
};
struct PlannedObject {
  std::string key;
  GroupRank owner;
};

struct GlobalPlan {
  std::vector<PlannedTensor> tensors;  ///< sorted by key
  std::vector<PlannedObject> objects;  ///< sorted by key
  std::vector<std::uint64_t> bytes;    ///< tensor bytes to write, per group rank
  std::uint64_t signature = 0;         ///< of all local plans in order
};

/// `plans[r]` is what group rank r of `savers` offers. Meshes speak of global ranks, plans and
/// owners of group ranks; `savers` ties them together, and every member of a mesh that is offered
/// stands in it.
///
/// A key that all members of one mesh offer by one placement is proved on the axes; its cost
/// depends on the boxes, not on the ranks that share PlacedOffers. Any other key is proved by
/// sweep. Owners: boxes with fewer holders first, among those the larger ones, then by key and box;
/// each goes where elect_least_loaded says. So the boxes that can go anywhere level out the others.
///
/// Throws COVERAGE_GAP, CHUNK_OVERLAP, EXTENT_MISMATCH, NO_WRITER (no replica 0 of a box or
/// object), MULTI_WRITER (two of them), SHAPE_DRIFT, DTYPE_DRIFT, COMMON_STATE_DIVERGES,
/// LAYOUT_MISMATCH, naming key, box and (global) ranks. Empty boxes are dropped; an
/// all-empty tensor keeps one empty chunk. The shards of an object's key form their whole grid; the
/// rank with the main copy owns the shard.
///
/// With `owners` nobody is elected: each box is written by whom that plan names for it. A box that
/// it does not know, or for which it names a rank that does not hold it, is kNobody's.
GlobalPlan global_plan(std::span<const LocalPlan> plans, const Group& savers,
                       const PlanRules& rules = {}, const GlobalPlan* owners = nullptr);
/// For savers that are the ranks 0 .. plans.size()-1.
GlobalPlan global_plan(std::span<const LocalPlan> plans, const PlanRules& rules = {});

}  // namespace reprise
