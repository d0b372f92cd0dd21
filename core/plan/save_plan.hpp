#pragma once
// Decides which rank writes which boxes. Pure: every rank computes the same global plan from the
// same offers.
//
//   2 x 2 example: w [4, 6], tp splits dimension 0, dp holds replicas;
//   boxes T = [0:2, 0:6] and B = [2:4, 0:6]
//
//     rank 0 (tp 0, dp 0) offers T, replica 0      owner of T: rank 0 or 2, whichever has less
//     rank 1 (tp 1, dp 0) offers B, replica 0                  to write
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

/// A tensor whose boxes and replica ids follow from a placement, for all members of its mesh.
struct PlacedOffer {
  TensorForm form;
  std::uint32_t placed = 0;  ///< index into PlacedOffers::placements
};

/// The part of an offer that does not depend on the rank. Ranks in equal mesh positions have equal
/// ones and share them.
struct PlacedOffers {
  std::vector<Placed> placements;  ///< distinct
  std::vector<PlacedOffer> tensors;
};

struct ObjectOffer {
  std::string key;  ///< with coordinate and grid: "rng_state/shard_0.1_2.4"
  std::int32_t replica = 0;
};

/// Everything one rank offers to write, each list sorted by key; no payload.
struct LocalPlan {
  std::shared_ptr<const PlacedOffers> placed = std::make_shared<const PlacedOffers>();
  GivenOffers given;
  std::vector<ObjectOffer> objects;
  std::uint64_t common_digest = 0;  ///< digest of the common state; must be equal on all ranks
};

/// Chooses the candidate (group ranks, ascending) that writes a box: the least loaded, or the
/// lowest of several. `load[r]` is the number of bytes assigned to rank r so far.
GroupRank elect_least_loaded(std::span<const GroupRank> candidates,
                             std::span<const std::uint64_t> load);

/// Returns the offers of `self`. A leaf is offered as placed if it has one box and its box and
/// replica id are those that its placement gives to `self` by the rule. Throws LAYOUT_MISMATCH if
/// `self` is not a member of a leaf's mesh.
LocalPlan local_plan(const StateDict& state, GlobalRank self, ChunkRule describe = ceil_chunk);

/// Encodes for the wire. decode throws TORN_FILE on malformed input.
Bytes encode(const LocalPlan& plan);
LocalPlan decode_local_plan(ByteSpan bytes);
/// Decodes the plans of all ranks; equal PlacedOffers become one.
std::vector<LocalPlan> decode_local_plans(std::span<const Bytes> wires);

/// Returns a hash of everything in a rank's plan: keys, shapes, dtypes, boxes, replica ids,
/// placements; but not of the common state's content.
std::uint64_t signature(const LocalPlan& plan);
std::uint64_t signature(const Placed& placed);
/// Return the hash of the shared parts, or of a plan whose parts' hashes are known.
std::uint64_t signature(const PlacedOffers& offers);
std::uint64_t signature(const std::vector<TensorForm>& forms);
std::uint64_t signature(const LocalPlan& plan, std::uint64_t placed, std::uint64_t forms);

/// Owner of a box that is not assigned to anyone.
inline constexpr GroupRank kNobody{-1};

/// A tensor and its chunks: rank owners[i] writes boxes[i].
struct PlannedTensor {
  std::string key;
  DType dtype = DType::kFloat32;
  Dims shape;
  /// Sorted; an empty box only if it is alone. Shared by tensors of equal shape and placement.
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
  std::uint64_t signature = 0;         ///< of all local plans, in order
};

/// Plans a save: `plans[r]` is the offer of group rank r of `savers`. Meshes use global ranks,
/// plans and owners use group ranks; `savers` maps between them and must contain every member of
/// every offered mesh.
///
/// A key that all members of one mesh offer by one placement is proved on the axes, at a cost that
/// depends on the boxes, not on the ranks that share PlacedOffers. Any other key is proved by
/// sweep. Owners are chosen for boxes with fewer holders first, then for larger ones, then by key
/// and box, each by elect_least_loaded. So boxes that can go anywhere even out the rest.
///
/// Throws COVERAGE_GAP, CHUNK_OVERLAP, EXTENT_MISMATCH, NO_WRITER (a box or object without replica
/// 0), MULTI_WRITER (with two), SHAPE_DRIFT, DTYPE_DRIFT, COMMON_STATE_DIVERGES and
/// LAYOUT_MISMATCH, naming key, box and (global) ranks. Drops empty boxes, but an all-empty tensor
/// keeps one empty chunk. The shards of an object's key must fill its grid; the rank with the main
/// copy owns the shard.
///
/// If `owners` is given, it determines the writer of each box and nobody is elected. A box unknown
/// to it, or assigned to a rank that does not hold it, goes to kNobody. `describe` is the rule by
/// which the ranks described their placements; `cover` proves boxes without a placement.
GlobalPlan global_plan(std::span<const LocalPlan> plans, const Group& savers,
                       const GlobalPlan* owners = nullptr, ChunkRule describe = ceil_chunk,
                       CoverProof cover = prove_cover);
/// Same, for savers with ranks 0 .. plans.size()-1.
GlobalPlan global_plan(std::span<const LocalPlan> plans);

}  // namespace reprise
