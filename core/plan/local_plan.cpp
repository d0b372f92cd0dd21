#include <algorithm>

#include "core/base/hash.hpp"
#include "core/base/key_order.hpp"
#include "core/plan/save_plan.hpp"

namespace reprise {
namespace {

TensorForm form_of(const TensorLeaf& leaf) {
  return {leaf.key, leaf.dtype, leaf.shape, leaf.folded};
}

/// Sorts leaves into placed and given offers. Placements are few, so a linear search finds them.
class Offers {
 public:
  Offers(GlobalRank self, ChunkRule describe) : self_(self), describe_(describe) {}

  void add(const TensorLeaf& leaf) {
    const auto box = leaf.placed ? box_of(leaf, *leaf.placed) : std::nullopt;
    const bool follows = box && holds(leaf, *box);
    // A tensor without elements still needs one chunk, and some rank has to hold that chunk.
    if (follows && leaf.replica == replica_ && !Box::whole(leaf.shape).empty()) {
      placed_.tensors.push_back({form_of(leaf), current_});
      return;
    }
    TensorOffer offer{form_of(leaf), {}, leaf.replica, {}};
    offer.boxes.reserve(leaf.pieces.size());
    for (const Piece& piece : leaf.pieces) offer.boxes.push_back(piece.box);
    if (box && !follows) {
      check_rule(leaf);
      offer.denied = *box;
    }
    given_.push_back(std::move(offer));
  }

  PlacedOffers& placed() { return placed_; }
  std::vector<TensorOffer>& given() { return given_; }

 private:
  static bool holds(const TensorLeaf& leaf, const Box& box) {
    if (leaf.pieces.empty()) return box.empty();
    return leaf.pieces.size() == 1 && leaf.pieces.front().box == box;
  }

  /// Returns the box that the placement gives to this rank. Also sets `current_` and `replica_`.
  std::optional<Box> box_of(const TensorLeaf& leaf, const Placed& placed) {
    select(placed, leaf.key);
    try {
      return placed.placement.box(leaf.shape, *placed.mesh, members_[current_], describe_);
    } catch (const Error& error) {
      throw error.within({.key = leaf.key});
    }
  }

  /// Called if this rank's box differs from the box that follows from its placement. Throws if the
  /// chunk rule is to blame, that is, if the boxes of the rule do not tile the tensor.
  void check_rule(const TensorLeaf& leaf) const {
    const auto& [mesh, placement] = *leaf.placed;
    const auto defect = prove_cover(leaf.shape, *mesh, placement, describe_);
    if (defect) throw Error(defect->code, defect->message, {.rank = self_, .key = leaf.key});
  }

  void select(const Placed& placed, const std::string& key) {
    for (std::size_t i = placed_.placements.size(); i-- > 0;) {
      const Placed& known = placed_.placements[i];
      const bool same_mesh = known.mesh == placed.mesh || *known.mesh == *placed.mesh;
      if (same_mesh && known.placement == placed.placement) {
        current_ = static_cast<std::uint32_t>(i);
        replica_ = replicas_[i];
        return;
      }
    }
    const auto member = placed.mesh->members().rank_of(self_);
    if (!member) {
      throw Error(Code::kLayoutMismatch,
                  "rank " + std::to_string(self_.value) +
                      " offers this key on a mesh of which it is not a member",
                  {.rank = self_, .key = key});
    }
    current_ = static_cast<std::uint32_t>(placed_.placements.size());
    placed_.placements.push_back(placed);
    members_.push_back(*member);
    replica_ = placed.placement.replica(*placed.mesh, *member);
    replicas_.push_back(replica_);
  }

  GlobalRank self_;
  ChunkRule describe_;
  PlacedOffers placed_;
  std::vector<GroupRank> members_;  ///< this rank's position in the mesh of each placement
  std::vector<std::int32_t> replicas_;
  std::vector<TensorOffer> given_;
  std::uint32_t current_ = 0;
  std::int32_t replica_ = 0;
};

std::string object_name(const ObjectLeaf& leaf) {
  std::string name = stored_key(leaf);
  if (leaf.is_plain()) {
    if (leaf.value.as<Bytes>() != nullptr) return name;
    throw Error(Code::kUsage,
                "an object without a grid must consist of bytes, but this one does not",
                {.key = leaf.key});
  }
  const auto parsed = parse_object_key(name);
  const bool same = parsed && parsed->key == leaf.key && parsed->grid == leaf.grid;
  if (!same) {
    throw Error(Code::kUsage,
                "an object needs a key without '/' and a grid with at least one dimension and one "
                "extent for each coordinate; this one would be called " +
                    name,
                {.key = leaf.key});
  }
  return name;
}

[[noreturn]] void refuse_twice(const std::string& key) {
  throw Error(Code::kMultiWriter,
              "two leaves of one rank have the same key; give them different keys, or make them "
              "pieces of one leaf",
              {.key = key});
}

const std::string& key_of(const PlacedOffer& offer) { return offer.form.key; }
const std::string& key_of(const TensorOffer& offer) { return offer.form.key; }
const std::string& key_of(const ObjectOffer& offer) { return offer.key; }

template <class Offer>
void sort_by_key(std::vector<Offer>& offers) {
  sort_by_keys(offers, [](const Offer& offer) -> const std::string& { return key_of(offer); });
  const auto twice =
      std::adjacent_find(offers.begin(), offers.end(),
                         [](const Offer& a, const Offer& b) { return key_of(a) == key_of(b); });
  if (twice != offers.end()) refuse_twice(key_of(*twice));
}

/// Throws if a key is in both lists, which must be sorted by key.
void check_distinct(const std::vector<PlacedOffer>& placed, const std::vector<TensorOffer>& given) {
  auto at = placed.begin();
  for (const TensorOffer& offer : given) {
    while (at != placed.end() && key_of(*at) < key_of(offer)) ++at;
    if (at != placed.end() && key_of(*at) == key_of(offer)) refuse_twice(key_of(offer));
  }
}

std::uint64_t hash_of(const Dims& dims) {
  const std::span<const std::int64_t> values(dims.begin(), dims.size());
  return mix64(dims.size(), reprise::hash_of(std::as_bytes(values)));
}

std::uint64_t hash_of(const TensorForm& form) {
  const std::uint64_t hash = mix64(
      mix64(reprise::hash_of(std::string_view(form.key)), static_cast<std::uint64_t>(form.dtype)),
      hash_of(form.shape));
  return form.folded.empty() ? hash
                             : mix64(hash, reprise::hash_of(std::as_bytes(std::span(form.folded))));
}

}  // namespace

LocalPlan local_plan(const StateDict& state, GlobalRank self, ChunkRule describe) {
  LocalPlan plan;
  Offers offers(self, describe);
  const auto given = std::ranges::count_if(state.tensors, [](const TensorLeaf& leaf) {
    return !leaf.placed;  // those whose boxes differ from their placement's are few
  });
  offers.given().reserve(static_cast<std::size_t>(given));
  for (const TensorLeaf& leaf : state.tensors) offers.add(leaf);
  for (const ObjectLeaf& leaf : state.objects) {
    plan.objects.push_back({object_name(leaf), leaf.replica, leaf.is_plain()});
  }
  if (!state.paths.empty()) plan.paths = std::make_shared<const KeyPaths>(state.paths);
  sort_by_key(offers.placed().tensors);
  sort_by_key(offers.given());
  sort_by_key(plan.objects);
  check_distinct(offers.placed().tensors, offers.given());
  plan.placed = std::make_shared<const PlacedOffers>(std::move(offers.placed()));
  plan.given = GivenOffers(offers.given());
  plan.common_digest = reprise::hash_of(state.common);
  return plan;
}

std::uint64_t signature(const KeyPaths& paths) {
  std::uint64_t hash = paths.size();
  for (const auto& [key, path] : paths) {
    hash = mix64(mix64(hash, reprise::hash_of(std::string_view(key))), path.size());
    for (const PathStep& step : path) {
      const auto* name = std::get_if<std::string>(&step);
      hash = mix64(mix64(hash, step.index()), name != nullptr
                                                  ? reprise::hash_of(std::string_view(*name))
                                                  : static_cast<std::uint64_t>(std::get<1>(step)));
    }
  }
  return hash;
}

std::uint64_t signature(const Placed& placed) {
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

std::uint64_t signature(const PlacedOffers& offers) {
  std::vector<std::uint64_t> placements;
  placements.reserve(offers.placements.size());
  for (const Placed& placed : offers.placements) placements.push_back(signature(placed));
  std::uint64_t hash = offers.tensors.size();
  for (const PlacedOffer& offer : offers.tensors) {
    hash = mix64(mix64(hash, hash_of(offer.form)), placements[offer.placed]);
  }
  return hash;
}

std::uint64_t signature(const std::vector<TensorForm>& forms) {
  std::uint64_t hash = forms.size();
  for (const TensorForm& form : forms) hash = mix64(hash, hash_of(form));
  return hash;
}

std::uint64_t signature(const LocalPlan& plan, std::uint64_t placed, std::uint64_t forms,
                        std::uint64_t paths) {
  std::uint64_t hash = mix64(mix64(placed, forms), mix64(plan.given.digest(), plan.objects.size()));
  for (const ObjectOffer& offer : plan.objects) {
    hash = mix64(mix64(hash, reprise::hash_of(std::string_view(offer.key))),
                 static_cast<std::uint64_t>(offer.replica));
  }
  return mix64(hash, paths);
}

std::uint64_t signature(const LocalPlan& plan) {
  return signature(plan, signature(*plan.placed), signature(*plan.given.forms()),
                   signature(*plan.paths));
}

}  // namespace reprise
