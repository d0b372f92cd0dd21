#include <algorithm>
#include <map>

#include "core/base/check.hpp"
#include "core/base/hash.hpp"
#include "core/base/print.hpp"
#include "core/geometry/folded_shape.hpp"
#include "core/plan/object_plan.hpp"
#include "core/plan/offer_book.hpp"
#include "core/plan/save_plan.hpp"
#include "core/plan/shard_layout.hpp"

namespace reprise {
namespace {

/// One offered box of a key and the rank that offers it. `corners` is the offset, then the extent.
struct Holding {
  std::span<const std::int64_t> corners;
  GroupRank rank;
  std::int32_t replica;

  Box box() const { return box_at(corners, corners.size() / 2, 0); }
  bool empty() const {
    const auto extent = corners.last(corners.size() / 2);
    return std::find(extent.begin(), extent.end(), 0) != extent.end();
  }
};

bool same_box(const Holding& a, const Holding& b) {
  for (std::size_t i = 0; i < a.corners.size(); ++i) {
    if (a.corners[i] != b.corners[i]) return false;
  }
  return true;
}

/// True if `a` comes before `b`. Holdings are in order of their boxes, and for equal boxes in order
/// of their ranks.
bool before(const Holding& a, const Holding& b) {
  for (std::size_t i = 0; i < a.corners.size(); ++i) {
    if (a.corners[i] != b.corners[i]) return a.corners[i] < b.corners[i];
  }
  return a.rank < b.rank;
}

/// A list of numbers that says which rank offers which boxes of a key. If two tensors have equal
/// patterns, they have the same boxes on the same ranks.
struct Pattern {
  Dims shape;
  std::vector<std::int64_t> numbers;  ///< rank, replica and corners of each holding

  std::size_t step() const { return 2 + 2 * shape.size(); }
  void add(GroupRank rank, std::int32_t replica, std::span<const std::int64_t> corners) {
    numbers.push_back(rank.value);
    numbers.push_back(replica);
    numbers.insert(numbers.end(), corners.begin(), corners.end());
  }

  friend bool operator<(const Pattern& a, const Pattern& b) {
    return a.shape == b.shape ? a.numbers < b.numbers : a.shape < b.shape;
  }
};

/// Boxes of one tensor whose owners are chosen together.
struct Turn {
  std::uint32_t holders;
  std::uint64_t bytes;  ///< size of each box
  std::uint32_t tensor;
  const HeldBoxes* held;
  const BoxBatch* batch;
};

class Planner {
 public:
  Planner(std::span<const LocalPlan> plans, const Group& savers, const GlobalPlan* owners,
          ChunkRule describe, CoverProof cover, ElectOwner elect)
      : plans_(plans),
        savers_(savers),
        owners_(owners),
        describe_(describe),
        cover_(cover),
        elect_(elect),
        book_(plans),
        layouts_(book_.placements(), savers, describe) {
    check_members(book_, layouts_, savers_);
  }

  void plan_tensors(GlobalPlan& plan) {
    plan.tensors.reserve(book_.keys().size());
    for (std::size_t k = 0; k < book_.keys().size(); ++k) {
      PlannedTensor& tensor = plan.tensors.emplace_back();
      tensor.key = book_.keys()[k];
      try {
        plan_tensor(tensor, k);
      } catch (const Error& error) {
        throw error.within({.key = tensor.key});
      }
    }
    elect_owners(plan);
  }

  std::uint64_t signature_of(std::span<const LocalPlan> plans) const {
    std::map<const void*, std::uint64_t> parts;  // used for lookups only
    const auto once = [&parts](const auto& part) {
      const auto [at, fresh] = parts.try_emplace(&part, 0);
      if (fresh) at->second = signature(part);
      return at->second;
    };
    std::uint64_t hash = mix64(plans.size());
    for (const LocalPlan& plan : plans) {
      hash = mix64(
          hash, signature(plan, once(*plan.placed), once(*plan.given.forms()), once(*plan.paths)));
    }
    return hash;
  }

 private:
  void plan_tensor(PlannedTensor& tensor, std::size_t key) {
    check_agreement(tensor, key);
    const HeldBoxes& held = follows_placement(key) ? placed_boxes(key) : given_boxes(tensor, key);
    tensor.boxes = held.boxes;
    if (!tensor.folded.empty()) require_whole_folds(tensor);
    tensor.owners.resize(held.boxes->size());
    const auto index = static_cast<std::uint32_t>(key);
    for (const BoxBatch& batch : held.batches) {
      turns_.push_back({batch.holders, bytes_of(batch, tensor.dtype), index, &held, &batch});
    }
  }

  /// Throws if a box is cut along the dimension that stands for others: the format could not say
  /// which of those are cut.
  static void require_whole_folds(const PlannedTensor& tensor) {
    for (const Box& box : *tensor.boxes) {
      if (box.extent[kMaxNdim - 1] == tensor.shape[kMaxNdim - 1]) continue;
      throw Error(Code::kUsage,
                  to_string(box) + " is cut along dimension " + std::to_string(kMaxNdim) +
                      " or a later one of a tensor with more dimensions than that; cut it along "
                      "an earlier one",
                  {.key = tensor.key});
    }
  }

  /// Sets the tensor's form from the first offer. Throws if another offer has a different form.
  void check_agreement(PlannedTensor& tensor, std::size_t key) const {
    std::optional<GroupRank> first;
    const auto check = [&](GroupRank rank, const TensorForm& form) {
      if (!first) {
        first = rank;
        tensor.dtype = form.dtype;
        tensor.shape = form.shape;
        tensor.folded = form.folded;
        return;
      }
      const auto between = [&](const auto& left, const auto& right) {
        const bool ascending = *first < rank;
        return to_words(ascending ? left : right) + " on " + name(std::min(*first, rank)) +
               " and " + to_words(ascending ? right : left) + " on " + name(std::max(*first, rank));
      };
      if (!(form.shape == tensor.shape) || form.folded != tensor.folded) {
        throw Error(Code::kShapeDrift,
                    "the global shape is " + between(unfolded(tensor.shape, tensor.folded),
                                                     unfolded(form.shape, form.folded)));
      }
      if (form.dtype != tensor.dtype) {
        throw Error(Code::kDtypeDrift, "the element type is " + between(tensor.dtype, form.dtype));
      }
    };
    for (const SectionOffer& at : book_.placed(key)) {
      check(book_.sections()[at.section].ranks.front(), at.offer->form);
    }
    for (const FormOffer& at : book_.given(key)) {
      const FormSection& section = book_.form_sections()[at.section];
      check(section.ranks.front(), (*section.forms)[at.index]);
    }
  }

  /// True if all offers of a key have the same placement and come from all members of its mesh. To
  /// check that no member is absent, it is enough to count the ranks: no rank is in two sections,
  /// and all ranks of a section are members of the mesh.
  bool follows_placement(std::size_t key) const {
    const auto offers = book_.placed(key);
    if (offers.empty() || !book_.given(key).empty()) return false;
    std::size_t ranks = 0;
    for (std::size_t i = 0; i < offers.size(); ++i) {
      const bool same = offers[i].placement == offers.front().placement;
      if (!same || (i > 0 && offers[i].section == offers[i - 1].section)) return false;
      ranks += book_.sections()[offers[i].section].ranks.size();
    }
    return ranks == book_.placements()[offers.front().placement]->mesh->members().members().size();
  }

  const HeldBoxes& placed_boxes(std::size_t key) {
    const SectionOffer& first = book_.placed(key).front();
    const ShardLayout& layout = layouts_.of(first.placement, first.offer->form.shape);
    if (layout.defect) throw_defect(*layout.defect, {});
    return layout.held;
  }

  const HeldBoxes& given_boxes(const PlannedTensor& tensor, std::size_t key) {
    const auto [at, fresh] = given_.try_emplace(pattern_of(tensor.shape, key));
    HeldBoxes& held = at->second;
    if (!fresh) return held;
    take_holdings(at->first);
    if (!std::is_sorted(holdings_.begin(), holdings_.end(), before)) {
      std::sort(holdings_.begin(), holdings_.end(), before);
    }
    auto boxes = std::make_shared<std::vector<Box>>();
    take_boxes(held, *boxes);
    held.boxes = boxes;
    batch_boxes(held);
    if (const auto defect = cover_(tensor.shape, *boxes)) throw_defect(*defect, holdings_);
    return held;
  }

  /// Copies the corners that a key has in each rank's plan. This is the only pass over all plans,
  /// which are in memory far apart.
  Pattern pattern_of(const Dims& shape, std::size_t key) {
    check_once(key);
    Pattern pattern{shape, {}};
    pattern.numbers.reserve(ranks_.size() * pattern.step());
    add_placed(pattern, key);
    for (const FormOffer& at : book_.given(key)) {
      for (const GroupRank rank : book_.form_sections()[at.section].ranks) {
        add_given(plans_[static_cast<std::size_t>(rank.value)].given, at.index, rank, pattern);
      }
    }
    return pattern;
  }

  void add_given(const GivenOffers& given, std::size_t i, GroupRank rank, Pattern& pattern) const {
    if (const Box* denied = given.denied(i)) refuse_denied(given.offer(i), *denied, rank);
    const auto corners = given.corners(i);
    const std::size_t size = 2 * pattern.shape.size();
    for (std::size_t b = 0; b < given.boxes(i); ++b) {
      const Holding holding{corners.subspan(b * size, size), rank, given.replica(i)};
      check_within(holding, pattern.shape);
      pattern.add(rank, holding.replica, holding.corners);
    }
  }

  /// Adds the boxes of all placed offers of a key. Used only for a key whose boxes do not all
  /// follow from the same placement.
  void add_placed(Pattern& pattern, std::size_t key) {
    std::vector<std::int64_t> corners;
    for (const SectionOffer& at : book_.placed(key)) {
      const auto& [mesh, placement] = *book_.placements()[at.placement];
      for (const GroupRank rank : book_.sections()[at.section].ranks) {
        const GroupRank member = *layouts_.member(at.placement, rank);
        const Box box = placement.box(pattern.shape, *mesh, member, describe_);
        corners.assign(box.offset.begin(), box.offset.end());
        corners.insert(corners.end(), box.extent.begin(), box.extent.end());
        pattern.add(rank, placement.replica(*mesh, member), corners);
      }
    }
  }

  /// Lists the holdings of a pattern, which must outlive their use.
  void take_holdings(const Pattern& pattern) {
    holdings_.clear();
    const std::span<const std::int64_t> numbers = pattern.numbers;
    for (std::size_t at = 0; at < numbers.size(); at += pattern.step()) {
      holdings_.push_back({numbers.subspan(at + 2, pattern.step() - 2),
                           {static_cast<std::int32_t>(numbers[at])},
                           static_cast<std::int32_t>(numbers[at + 1])});
    }
  }

  [[noreturn]] void refuse_denied(const TensorOffer& offer, const Box& denied,
                                  GroupRank rank) const {
    const auto& boxes = offer.boxes;
    throw Error(Code::kLayoutMismatch,
                name(rank) + " holds " + (boxes.empty() ? "nothing" : to_string(boxes.front())) +
                    " but its placement gives it " + to_string(denied),
                {.rank = savers_.member(rank)});
  }

  /// Validates a box that another rank sent. Must be called before any computation with the box.
  void check_within(const Holding& holding, const Dims& shape) const {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::int64_t offset = holding.corners[d];
      const std::int64_t extent = holding.corners[shape.size() + d];
      const bool within =
          offset >= 0 && offset <= shape[d] && extent >= 0 && extent <= shape[d] - offset;
      if (within) continue;
      const Box box = holding.box();
      throw Error(Code::kExtentMismatch,
                  "the box at " + to_string(box.offset) + " of extent " + to_string(box.extent) +
                      " leaves the tensor of shape " + to_string(shape) + "; offered by ranks " +
                      std::to_string(savers_.member(holding.rank).value),
                  {.rank = savers_.member(holding.rank)});
    }
  }

  /// Throws if a rank offers a key twice.
  void check_once(std::size_t key) {
    ranks_.clear();
    const auto add = [this](const std::vector<GroupRank>& ranks) {
      ranks_.insert(ranks_.end(), ranks.begin(), ranks.end());
    };
    for (const SectionOffer& at : book_.placed(key)) add(book_.sections()[at.section].ranks);
    for (const FormOffer& at : book_.given(key)) add(book_.form_sections()[at.section].ranks);
    if (!std::is_sorted(ranks_.begin(), ranks_.end())) std::sort(ranks_.begin(), ranks_.end());
    const auto twice = std::adjacent_find(ranks_.begin(), ranks_.end());
    if (twice == ranks_.end()) return;
    throw Error(Code::kMultiWriter, name(*twice) + " offers this key twice");
  }

  /// Merges equal boxes; their ranks become the holders. Omits empty boxes. Metadata identifies a
  /// chunk only by its offset, and an empty box may begin where another box does:
  ///
  ///   length 3, tp 2 then dp 3:   tp 0: [0:1] [1:2] [2:2]   tp 1: [2:3] [3:3] [3:3]
  void take_boxes(HeldBoxes& held, std::vector<Box>& boxes) {
    const bool all_empty =
        std::all_of(holdings_.begin(), holdings_.end(), [](const Holding& h) { return h.empty(); });
    std::size_t different = 0;
    for (std::size_t i = 0; i < holdings_.size(); ++i) {
      if (i == 0 || !same_box(holdings_[i - 1], holdings_[i])) ++different;
    }
    boxes.reserve(different);
    held.first.reserve(different + 1);
    held.holders.reserve(holdings_.size());
    held.first.push_back(0);
    for (std::size_t first = 0; first < holdings_.size();) {
      std::size_t last = first + 1;
      while (last < holdings_.size() && same_box(holdings_[first], holdings_[last])) ++last;
      const auto group = std::span(holdings_).subspan(first, last - first);
      first = last;
      if (group.front().empty()) {
        if (!all_empty || !boxes.empty()) continue;
      } else {
        check_main_copy(group);
      }
      boxes.push_back(group.front().box());
      for (const Holding& holding : group) {
        if (held.holders.size() == held.first.back() || held.holders.back() != holding.rank) {
          held.holders.push_back(holding.rank);
        }
      }
      held.first.push_back(static_cast<std::uint32_t>(held.holders.size()));
    }
  }

  static std::uint64_t bytes_of(const BoxBatch& batch, DType dtype) {
    std::uint64_t bytes = 0;
    if (!__builtin_mul_overflow(batch.elements, size_of(dtype), &bytes)) return bytes;
    throw Error(Code::kExtentMismatch, "a box of " + std::to_string(batch.elements) +
                                           " elements is too large to be a box of a tensor");
  }

  void check_main_copy(std::span<const Holding> group) const {
    const auto copies = [&group](std::int32_t replica) {
      return std::count_if(group.begin(), group.end(),
                           [replica](const Holding& h) { return h.replica == replica; });
    };
    const auto main_copies = copies(0);
    if (main_copies == 1 || (main_copies == 0 && copies(kAnyCopy) > 0)) return;
    const Box box = group.front().box();
    std::vector<GlobalRank> mains;
    std::vector<GlobalRank> all;
    for (const Holding& holding : group) {
      all.push_back(savers_.member(holding.rank));
      if (holding.replica == 0) mains.push_back(all.back());
    }
    if (mains.empty()) {
      throw Error(Code::kNoWriter, "no rank holds the main copy of " + to_string(box) +
                                       "; other copies are on ranks " + join(all, " "));
    }
    throw Error(Code::kMultiWriter,
                "ranks " + join(mains, " ") + " each claim the main copy of " + to_string(box));
  }

  [[noreturn]] void throw_defect(const CoverDefect& defect,
                                 std::span<const Holding> holdings) const {
    std::vector<GlobalRank> ranks;
    for (const Holding& holding : holdings) {
      const Box box = holding.box();
      const bool touches = defect.code == Code::kExtentMismatch
                               ? box == defect.where
                               : intersect(box, defect.where).has_value();
      if (touches) ranks.push_back(savers_.member(holding.rank));
    }
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    throw Error(defect.code, ranks.empty()
                                 ? defect.message
                                 : defect.message + "; offered by ranks " + join(ranks, " "));
  }

  void elect_owners(GlobalPlan& plan) {
    std::sort(turns_.begin(), turns_.end(), [](const Turn& a, const Turn& b) {
      if (a.holders != b.holders) return a.holders < b.holders;
      return a.bytes != b.bytes ? a.bytes > b.bytes : a.tensor < b.tensor;
    });
    for (const Turn& turn : turns_) {
      if (owners_ != nullptr) {
        take_owners(turn, plan);
      } else {
        choose_owners(turn, plan);
      }
    }
  }

  void choose_owners(const Turn& turn, GlobalPlan& plan) const {
    auto& owners = plan.tensors[turn.tensor].owners;
    for (const std::uint32_t box : turn.batch->boxes) {
      const auto holders = turn.held->holders_of(box);
      const GroupRank owner = holders.size() == 1 ? holders.front() : elect_(holders, plan.bytes);
      owners[box] = owner;
      plan.bytes[static_cast<std::size_t>(owner.value)] += turn.bytes;
    }
  }

  void take_owners(const Turn& turn, GlobalPlan& plan) const {
    PlannedTensor& tensor = plan.tensors[turn.tensor];
    const auto& known = owners_->tensors;
    const auto at = std::lower_bound(
        known.begin(), known.end(), tensor.key,
        [](const PlannedTensor& other, const std::string& key) { return other.key < key; });
    const bool found = at != known.end() && at->key == tensor.key;
    for (const std::uint32_t box : turn.batch->boxes) {
      const GroupRank owner = found ? owner_in(*at, (*tensor.boxes)[box]) : kNobody;
      const auto holders = turn.held->holders_of(box);
      const bool holds = std::find(holders.begin(), holders.end(), owner) != holders.end();
      tensor.owners[box] = holds ? owner : kNobody;
      if (holds) plan.bytes[static_cast<std::size_t>(owner.value)] += turn.bytes;
    }
  }

  static GroupRank owner_in(const PlannedTensor& tensor, const Box& box) {
    const auto at = std::lower_bound(tensor.boxes->begin(), tensor.boxes->end(), box);
    if (at == tensor.boxes->end() || !(*at == box)) return kNobody;
    return tensor.owners[static_cast<std::size_t>(at - tensor.boxes->begin())];
  }

  std::string name(GroupRank rank) const {
    return "rank " + std::to_string(savers_.member(rank).value);
  }
  static std::string to_words(const std::vector<std::int64_t>& shape) { return shape_text(shape); }
  static std::string to_words(DType dtype) { return std::string(name_of(dtype)); }

  std::span<const LocalPlan> plans_;
  const Group& savers_;
  /// The plan from which owners are taken; null if owners are to be elected.
  const GlobalPlan* owners_;
  ChunkRule describe_;
  CoverProof cover_;
  ElectOwner elect_;
  OfferBook book_;
  ShardLayouts layouts_;
  std::map<Pattern, HeldBoxes> given_;  ///< boxes of keys without a placement; only for lookups
  std::vector<Turn> turns_;

  // The members below hold the state of the current key.
  std::vector<Holding> holdings_;
  std::vector<GroupRank> ranks_;
};

/// Throws if the common state differs between ranks. Assumes that the most frequent digest is the
/// right one. If several digests are equally frequent, assumes that the lowest rank has the right
/// one.
void check_common_state(std::span<const LocalPlan> plans, const Group& savers) {
  std::map<std::uint64_t, std::size_t> votes;
  for (const LocalPlan& plan : plans) ++votes[plan.common_digest];
  if (votes.size() == 1) return;
  std::uint64_t most = plans.front().common_digest;
  for (const LocalPlan& plan : plans) {
    if (votes[plan.common_digest] > votes[most]) most = plan.common_digest;
  }
  std::vector<GlobalRank> others;
  for (std::size_t r = 0; r < plans.size(); ++r) {
    if (plans[r].common_digest != most) {
      others.push_back(savers.member({static_cast<std::int32_t>(r)}));
    }
  }
  throw Error(Code::kCommonStateDiverges,
              "the common state must be the same on all ranks, but ranks " + join(others, " ") +
                  " hold a different one than the other " +
                  std::to_string(plans.size() - others.size()) +
                  "; pass values that differ between ranks as sharded objects",
              {.rank = others.front()});
}

/// Throws if an object is stored under the key of a tensor, which another rank may have.
void require_other_keys(const GlobalPlan& plan) {
  auto at = plan.tensors.begin();
  for (const PlannedObject& object : plan.objects) {
    while (at != plan.tensors.end() && at->key < object.key) ++at;
    if (at == plan.tensors.end() || at->key != object.key) continue;
    throw Error(Code::kLayoutMismatch,
                "some ranks save a tensor under this key, but others save bytes",
                {.key = object.key});
  }
}

/// Returns the paths of all ranks. Throws if ranks name different paths for a key.
std::shared_ptr<const KeyPaths> merged_paths(std::span<const LocalPlan> plans,
                                             const Group& savers) {
  std::shared_ptr<const KeyPaths> all = plans.front().paths;
  for (std::size_t r = 1; r < plans.size(); ++r) {
    if (plans[r].paths == all || plans[r].paths->empty()) continue;
    auto more = std::make_shared<KeyPaths>(*all);
    for (const auto& [key, path] : *plans[r].paths) {
      const auto [at, fresh] = more->try_emplace(key, path);
      if (fresh || at->second == path) continue;
      const GlobalRank rank = savers.member({static_cast<std::int32_t>(r)});
      throw Error(Code::kLayoutMismatch,
                  "rank " + std::to_string(rank.value) +
                      " uses another path for this key than a lower rank",
                  {.rank = rank, .key = key});
    }
    all = std::move(more);
  }
  return all;
}

}  // namespace

GroupRank elect_least_loaded(std::span<const GroupRank> candidates,
                             std::span<const std::uint64_t> load) {
  const auto load_of = [load](GroupRank rank) {
    return load[static_cast<std::size_t>(rank.value)];
  };
  return *std::min_element(candidates.begin(), candidates.end(),
                           [&](GroupRank a, GroupRank b) { return load_of(a) < load_of(b); });
}

GlobalPlan global_plan(std::span<const LocalPlan> plans, const Group& savers,
                       const GlobalPlan* owners, ChunkRule describe, CoverProof cover,
                       ElectOwner elect) {
  CHECK(!plans.empty() && static_cast<std::size_t>(savers.size()) == plans.size(), plans.size());
  check_common_state(plans, savers);
  GlobalPlan plan;
  plan.bytes.assign(plans.size(), 0);
  Planner planner(plans, savers, owners, describe, cover, elect);
  plan.signature = planner.signature_of(plans);
  planner.plan_tensors(plan);
  plan.objects = plan_objects(plans, savers);
  require_other_keys(plan);
  plan.paths = merged_paths(plans, savers);
  return plan;
}

GlobalPlan global_plan(std::span<const LocalPlan> plans) {
  return global_plan(plans, Group::world(static_cast<std::int32_t>(plans.size())));
}

}  // namespace reprise
