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

/// A tensor that a rank offers by mesh and placement. The mesh and the placement determine the box
/// and the replica id of every member of the mesh.
struct PlacedOffer {
  TensorForm form;
  std::uint32_t placed = 0;  ///< index into PlacedOffers::placements
};

/// The placed tensors that a rank offers. The list does not contain the rank's number, so the lists
/// of several ranks may be equal. Equal lists are kept in memory once.
struct PlacedOffers {
  std::vector<Placed> placements;  ///< distinct
  std::vector<PlacedOffer> tensors;
};

struct ObjectOffer {
  std::string key;  ///< as stored, unless it is plain with coordinate and grid: "rng/shard_0.1_2.4"
  std::int32_t replica = 0;
  bool plain = false;
};

/// Everything that one rank offers to write. Each list is sorted by key. The elements of tensors
/// are not included.
struct LocalPlan {
  std::shared_ptr<const PlacedOffers> placed = std::make_shared<const PlacedOffers>();
  GivenOffers given;
  std::vector<ObjectOffer> objects;
  std::shared_ptr<const KeyPaths> paths = std::make_shared<const KeyPaths>();
  std::uint64_t common_digest = 0;  ///< digest of the common state; must be equal on all ranks
};

/// Chooses, from `candidates` (group ranks, ascending), the rank that writes a box. `load[r]` is
/// the number of bytes assigned to rank r so far.
using ElectOwner = GroupRank (*)(std::span<const GroupRank> candidates,
                                 std::span<const std::uint64_t> load);
/// Chooses the least loaded rank, or the lowest of several that are equally loaded.
GroupRank elect_least_loaded(std::span<const GroupRank> candidates,
                             std::span<const std::uint64_t> load);

/// Returns the offers of `self`. A leaf with one box is offered by its placement if the placement
/// and the chunk rule `describe` yield the leaf's box and replica id for `self`. All other leaves
/// are offered box by box. Throws LAYOUT_MISMATCH if `self` is not a member of a leaf's mesh.
LocalPlan local_plan(const StateDict& state, GlobalRank self, ChunkRule describe = ceil_chunk);

/// encode() returns the plan as a message; decode_local_plan() throws TORN_FILE if the message is
/// malformed.
Bytes encode(const LocalPlan& plan);
LocalPlan decode_local_plan(ByteSpan bytes);
/// Decodes the plans of all ranks. Equal PlacedOffers become one shared object.
std::vector<LocalPlan> decode_local_plans(std::span<const Bytes> wires);

/// Returns a hash of everything in a rank's plan: keys, shapes, dtypes, boxes, replica ids and
/// placements. The content of the common state is left out.
std::uint64_t signature(const LocalPlan& plan);
std::uint64_t signature(const Placed& placed);
/// The first three functions hash the parts of a plan that ranks share, so that each such part is
/// hashed only once. The fourth returns the hash of a plan, given the hashes of its shared parts.
std::uint64_t signature(const PlacedOffers& offers);
std::uint64_t signature(const std::vector<TensorForm>& forms);
std::uint64_t signature(const KeyPaths& paths);
std::uint64_t signature(const LocalPlan& plan, std::uint64_t placed, std::uint64_t forms,
                        std::uint64_t paths);

/// Marks a box that is not assigned to any rank.
inline constexpr GroupRank kNobody{-1};

/// A tensor and its chunks. Rank owners[i] writes boxes[i].
struct PlannedTensor {
  std::string key;
  DType dtype = DType::kFloat32;
  Dims shape;
  FoldedExtents folded = {};  ///< see StoredTensor
  /// The boxes in ascending order. An empty box is kept only if the tensor has no other box.
  /// Tensors of equal shape and placement share one list.
  std::shared_ptr<const std::vector<Box>> boxes;
  std::vector<GroupRank> owners;
};
struct PlannedObject {
  std::string key;
  GroupRank owner;
  std::int32_t copies = 1;  ///< how many ranks hold it, the owner among them
};

struct GlobalPlan {
  std::vector<PlannedTensor> tensors;  ///< sorted by key
  std::vector<PlannedObject> objects;  ///< sorted by key
  std::shared_ptr<const KeyPaths> paths = std::make_shared<const KeyPaths>();
  std::vector<std::uint64_t> bytes;  ///< tensor bytes that each group rank writes
  std::uint64_t signature = 0;       ///< signature of all local plans, in group order
};

/// Plans a save; `plans[r]` is the offer of group rank r of `savers`. Meshes contain global ranks,
/// while plans and owners use group ranks. `savers` maps between the two and must contain every
/// member of every offered mesh.
///
/// The first step proves that the boxes of each key cover the tensor. If all members of one mesh
/// offer the key by the same placement, the proof examines the axes of the mesh; its cost depends
/// on the number of boxes, not on the number of ranks that share PlacedOffers. For any other key,
/// `cover` provides the proof.
///
/// In the second step, `elect` chooses the owners of boxes with several holders, one at a time. The
/// boxes are ordered by number of holders (fewest first), then by size (largest first), then by key
/// and box. Boxes that many ranks could write therefore come last and even out the load.
///
/// Throws COVERAGE_GAP, CHUNK_OVERLAP, EXTENT_MISMATCH, SHAPE_DRIFT, DTYPE_DRIFT,
/// COMMON_STATE_DIVERGES, LAYOUT_MISMATCH, and USAGE for
/// a box that is cut along a folded dimension; the errors name the key, the box and the global
/// ranks. Throws NO_WRITER if a box or object has neither a replica 0 nor a copy without a number,
/// and MULTI_WRITER if it has several replicas 0.
///
/// Empty boxes are dropped, but a tensor of empty boxes keeps one empty chunk. The shards of an
/// object's key must fill its grid; the rank with the main copy of a shard owns it.
///
/// If `owners` is given, there is no election: each box gets its owner from the plan `owners`. A
/// box gets kNobody if that plan lacks the box, or if its owner does not hold the box in this save.
/// `describe` is the rule by which the ranks described their placements.
GlobalPlan global_plan(std::span<const LocalPlan> plans, const Group& savers,
                       const GlobalPlan* owners = nullptr, ChunkRule describe = ceil_chunk,
                       CoverProof cover = prove_cover, ElectOwner elect = elect_least_loaded);
/// Plans a save in which ranks 0 to plans.size() - 1 take part.
GlobalPlan global_plan(std::span<const LocalPlan> plans);

}  // namespace reprise
