#include <algorithm>

#include "core/base/hash.hpp"
#include "core/plan/save_plan.hpp"

namespace reprise {
namespace {

/// Collects the distinct placements; few, so a scan finds them.
class Placements {
 public:
  std::int32_t index_of(const Placed& placed) {
    for (std::size_t i = all_.size(); i-- > 0;) {
      const bool same_mesh = all_[i].mesh == placed.mesh || *all_[i].mesh == *placed.mesh;
      if (same_mesh && all_[i].placement == placed.placement) return static_cast<std::int32_t>(i);
    }
    all_.push_back(placed);
    return static_cast<std::int32_t>(all_.size()) - 1;
  }

  std::vector<Placed> take() { return std::move(all_); }

 private:
  std::vector<Placed> all_;
};

TensorOffer offer_of(const TensorLeaf& leaf) {
  TensorOffer offer{leaf.key, leaf.dtype, leaf.shape, {}, leaf.replica, -1};
  offer.boxes.reserve(leaf.pieces.size());
  for (const Piece& piece : leaf.pieces) offer.boxes.push_back(piece.box);
  return offer;
}

std::string object_name(const ObjectLeaf& leaf) {
  std::string name = object_key(leaf.key, leaf.coordinate, leaf.grid);
  const auto parsed = parse_object_key(name);
  const bool same = parsed && parsed->key == leaf.key && parsed->grid == leaf.grid;
  if (!same) {
    throw Error(Code::kUsage,
                "an object needs a key without '/' and a grid with one extent for each coordinate, "
                "at least one; this one would be called " +
                    name,
                {.key = leaf.key});
  }
  return name;
}

template <class Offer>
void sort_by_key(std::vector<Offer>& offers) {
  const auto by_key = [](const Offer& a, const Offer& b) { return a.key < b.key; };
  if (!std::is_sorted(offers.begin(), offers.end(), by_key)) {
    std::sort(offers.begin(), offers.end(), by_key);
  }
  const auto twice = std::adjacent_find(
      offers.begin(), offers.end(), [](const Offer& a, const Offer& b) { return a.key == b.key; });
  if (twice != offers.end()) {
    throw Error(Code::kMultiWriter,
                "two leaves of one rank have the same key; give them different keys, or make them "
                "pieces of one leaf",
                {.key = twice->key});
  }
}

std::uint64_t hash_of(const Dims& dims) {
  const std::span<const std::int64_t> values(dims.begin(), dims.size());
  return mix64(dims.size(), reprise::hash_of(std::as_bytes(values)));
}

std::uint64_t hash_of(const Placed& placed) {
  std::uint64_t hash = mix64(placed.mesh->axes().size());
  for (const Axis& axis : placed.mesh->axes()) {
    hash = mix64(mix64(hash, reprise::hash_of(std::string_view(axis.name))),
                 static_cast<std::uint64_t>(axis.size));
  }
  for (const GlobalRank rank : placed.mesh->members().members()) {
    hash = mix64(hash, static_cast<std::uint64_t>(rank.value));
  }
  for (const Split& split : placed.placement.splits()) {
    hash = mix64(mix64(hash, reprise::hash_of(std::string_view(split.axis))), split.dim);
  }
  return hash;
}

std::uint64_t hash_of(const TensorOffer& offer, std::span<const std::uint64_t> placements) {
  std::uint64_t hash =
      mix64(reprise::hash_of(std::string_view(offer.key)), static_cast<std::uint64_t>(offer.dtype));
  hash = mix64(hash, hash_of(offer.shape));
  hash = mix64(hash, offer.boxes.size());
  for (const Box& box : offer.boxes) {
    hash = mix64(mix64(hash, hash_of(box.offset)), hash_of(box.extent));
  }
  hash = mix64(hash, static_cast<std::uint64_t>(offer.replica));
  if (offer.placed < 0) return mix64(hash, 0);
  return mix64(hash, placements[static_cast<std::size_t>(offer.placed)]);
}

}  // namespace

LocalPlan local_plan(const StateDict& state, const PlanPolicy& policy) {
  LocalPlan plan;
  Placements placements;
  plan.tensors.reserve(state.tensors.size());
  for (const TensorLeaf& leaf : state.tensors) {
    plan.tensors.push_back(offer_of(leaf));
    if (!leaf.placed) continue;
    try {  // refuses what is no placement of this shape, where the leaf is known
      const auto& [mesh, placement] = *leaf.placed;
      static_cast<void>(placement.box(leaf.shape, *mesh, GroupRank{0}, policy.describe));
    } catch (const Error& error) {
      throw error.within({.key = leaf.key});
    }
    plan.tensors.back().placed = placements.index_of(*leaf.placed);
  }
  for (const ObjectLeaf& leaf : state.objects) {
    plan.objects.push_back({object_name(leaf), leaf.replica});
  }
  sort_by_key(plan.tensors);
  sort_by_key(plan.objects);
  plan.placements = placements.take();
  plan.common_digest = reprise::hash_of(state.common);
  return plan;
}

std::uint64_t signature(const LocalPlan& plan) {
  std::vector<std::uint64_t> placements;
  for (const Placed& placed : plan.placements) placements.push_back(hash_of(placed));
  std::uint64_t hash = mix64(plan.tensors.size(), plan.objects.size());
  for (const TensorOffer& offer : plan.tensors) hash = mix64(hash, hash_of(offer, placements));
  for (const ObjectOffer& offer : plan.objects) {
    hash = mix64(mix64(hash, reprise::hash_of(std::string_view(offer.key))),
                 static_cast<std::uint64_t>(offer.replica));
  }
  return hash;
}

}  // namespace reprise
