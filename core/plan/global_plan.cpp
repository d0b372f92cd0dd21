#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/hash.hpp"
#include "core/base/print.hpp"
#include "core/plan/layout.hpp"
#include "core/plan/object_plan.hpp"
#include "core/plan/offer_book.hpp"
#include "core/plan/save_plan.hpp"

namespace reprise {
namespace {

/// A box of the plan and the ranks that hold it: candidates[first .. first + count).
struct Item {
  std::uint32_t tensor;
  std::uint32_t chunk;
  std::uint64_t bytes;
  std::size_t first;
  std::size_t count;
};

/// One offered box of a key.
struct Holding {
  const Box* box;
  GroupRank rank;
  std::int32_t replica;
};

class Planner {
 public:
  Planner(std::span<const LocalPlan> plans, const Group& savers, const PlanPolicy& policy)
      : savers_(savers),
        policy_(policy),
        book_(plans),
        layouts_(book_.placements(), savers, policy.describe) {}

  void plan_tensors(GlobalPlan& plan) {
    plan.tensors.reserve(book_.keys().size());
    for (std::size_t k = 0; k < book_.keys().size(); ++k) {
      PlannedTensor& tensor = plan.tensors.emplace_back();
      tensor.key = book_.keys()[k];
      try {
        plan_tensor(tensor, book_.offers(k), static_cast<std::uint32_t>(k));
      } catch (const Error& error) {
        throw error.within({.key = tensor.key});
      }
    }
    elect_owners(plan);
  }

 private:
  using Offers = std::span<const RankOffer>;

  void plan_tensor(PlannedTensor& tensor, Offers offers, std::uint32_t index) {
    const TensorOffer& first = *offers.front().offer;
    tensor.dtype = first.dtype;
    tensor.shape = first.shape;
    check_agreement(offers);
    const bool proved = on_axes(offers);
    if (proved) check_boxes(offers);
    collect_holdings(offers);
    add_chunks(tensor, index);
    // Checked before on the axes: all members' boxes tile. Here: each of them is offered.
    if (!proved ||
        tensor.chunks.size() != layouts_.of(offers[0].placed, first.shape).boxes.size()) {
      check_cover(tensor);
    }
  }

  void check_agreement(Offers offers) const {
    const RankOffer& a = offers.front();
    for (const RankOffer& b : offers) {
      const auto between = [&](const auto& left, const auto& right) {
        return to_words(left) + " on " + name(a.rank) + " and " + to_words(right) + " on " +
               name(b.rank);
      };
      if (!(a.offer->shape == b.offer->shape)) {
        throw Error(Code::kShapeDrift,
                    "the global shape is " + between(a.offer->shape, b.offer->shape));
      }
      if (a.offer->dtype != b.offer->dtype) {
        throw Error(Code::kDtypeDrift,
                    "the element type is " + between(a.offer->dtype, b.offer->dtype));
      }
      if (&a != &b && a.rank == b.rank) {
        throw Error(Code::kMultiWriter, name(a.rank) + " offers this key twice");
      }
    }
  }

  /// One placement for all, and at most one box each.
  static bool on_axes(Offers offers) {
    const std::int32_t placed = offers.front().placed;
    return placed >= 0 && std::all_of(offers.begin(), offers.end(), [placed](const RankOffer& at) {
             return at.placed == placed && at.offer->boxes.size() <= 1;
           });
  }

  void check_boxes(Offers offers) {
    const RankOffer& first = offers.front();
    const Layout& layout = layouts_.of(first.placed, first.offer->shape);
    if (layout.defect) throw_defect(*layout.defect, {});
    for (const RankOffer& at : offers) {
      const auto member = layouts_.member(at.placed, at.rank);
      if (!member) {
        throw Error(Code::kLayoutMismatch,
                    name(at.rank) + " offers this key by a mesh of which it is no member");
      }
      const Box& expected = layout.boxes[layout.box_of[static_cast<std::size_t>(member->value)]];
      const auto& boxes = at.offer->boxes;
      if (boxes.empty() ? expected.empty() : boxes.front() == expected) continue;
      throw Error(Code::kLayoutMismatch,
                  name(at.rank) + " holds " +
                      (boxes.empty() ? "nothing" : to_string(boxes.front())) +
                      " and its placement gives it " + to_string(expected),
                  {.rank = savers_.member(at.rank)});
    }
  }

  void collect_holdings(Offers offers) {
    holdings_.clear();
    for (const RankOffer& at : offers) {
      for (const Box& box : at.offer->boxes) {
        if (box.offset.size() != box.extent.size() || box.rank() != at.offer->shape.size()) {
          throw Error(Code::kExtentMismatch,
                      name(at.rank) + " offers a box of another number of dimensions than shape " +
                          to_string(at.offer->shape));
        }
        check_empty(box, at.offer->shape);
        holdings_.push_back({&box, at.rank, at.offer->replica});
      }
    }
    const auto by_box = [](const Holding& a, const Holding& b) { return *a.box < *b.box; };
    if (std::is_sorted(holdings_.begin(), holdings_.end(), by_box)) return;
    std::stable_sort(holdings_.begin(), holdings_.end(), by_box);
  }

  /// Equal boxes become one chunk; their ranks its candidates. Metadata tells chunks apart by their
  /// offset alone, so an empty box makes way for another one that begins where it does:
  ///
  ///   length 3, tp 2 then dp 3:   tp 0: [0:1] [1:2] [2:2]   tp 1: [2:3] [3:3] [3:3]
  void add_chunks(PlannedTensor& tensor, std::uint32_t index) {
    for (std::size_t first = 0; first < holdings_.size();) {
      const Box& box = *holdings_[first].box;
      std::size_t last = first;
      while (last < holdings_.size() && *holdings_[last].box == box) ++last;
      const auto group = std::span(holdings_).subspan(first, last - first);
      check_main_copy(group);
      first = last;
      if (has_no_elements(box) && begins_beside(box, tensor, last)) continue;
      Item item{index, static_cast<std::uint32_t>(tensor.chunks.size()),
                bytes_of(box, tensor.dtype), candidates_.size(), 0};
      for (const Holding& holding : group) {
        if (candidates_.size() == item.first || candidates_.back() != holding.rank) {
          candidates_.push_back(holding.rank);
        }
      }
      item.count = candidates_.size() - item.first;
      items_.push_back(item);
      tensor.chunks.push_back({box, {}});
    }
  }

  /// One that makes way is not seen by the proof of cover.
  static void check_empty(const Box& box, const Dims& shape) {
    if (!has_no_elements(box)) return;
    for (std::size_t d = 0; d < box.rank(); ++d) {
      const bool within = box.offset[d] >= 0 && box.offset[d] <= shape[d] && box.extent[d] >= 0 &&
                          box.extent[d] <= shape[d] - box.offset[d];
      if (within) continue;
      throw Error(Code::kExtentMismatch,
                  "the empty box " + to_string(box) + " leaves the shape " + to_string(shape));
    }
  }

  /// Safe for any numbers.
  static bool has_no_elements(const Box& box) {
    return std::find(box.extent.begin(), box.extent.end(), 0) != box.extent.end();
  }

  /// True if the chunk before `box` or the holding after it has the same offset.
  bool begins_beside(const Box& box, const PlannedTensor& tensor, std::size_t after) const {
    return (!tensor.chunks.empty() && tensor.chunks.back().box.offset == box.offset) ||
           (after < holdings_.size() && holdings_[after].box->offset == box.offset);
  }

  static std::uint64_t bytes_of(const Box& box, DType dtype) {
    const auto elements = checked_volume(box.extent);
    std::uint64_t bytes = 0;
    if (!elements ||
        __builtin_mul_overflow(static_cast<std::uint64_t>(*elements), size_of(dtype), &bytes)) {
      throw Error(Code::kExtentMismatch,
                  "a box of extent " + to_string(box.extent) + " is no box of a real tensor");
    }
    return bytes;
  }

  void check_main_copy(std::span<const Holding> group) const {
    const Box& box = *group.front().box;
    const auto main_copies =
        std::count_if(group.begin(), group.end(), [](const Holding& h) { return h.replica == 0; });
    if (main_copies == 1) return;
    if (has_no_elements(box)) return;
    std::vector<GlobalRank> mains;
    std::vector<GlobalRank> all;
    for (const Holding& holding : group) {
      all.push_back(savers_.member(holding.rank));
      if (holding.replica == 0) mains.push_back(all.back());
    }
    if (mains.empty()) {
      throw Error(Code::kNoWriter, "no rank holds the main copy of " + to_string(box) +
                                       "; spare copies are on ranks " + join(all, " "));
    }
    throw Error(Code::kMultiWriter,
                "ranks " + join(mains, " ") + " each claim the main copy of " + to_string(box));
  }

  void check_cover(const PlannedTensor& tensor) const {
    std::vector<Box> boxes;
    boxes.reserve(tensor.chunks.size());
    for (const PlannedChunk& chunk : tensor.chunks) boxes.push_back(chunk.box);
    if (const auto defect = policy_.cover(tensor.shape, boxes)) throw_defect(*defect, holdings_);
  }

  [[noreturn]] void throw_defect(const CoverDefect& defect,
                                 std::span<const Holding> holdings) const {
    std::vector<GlobalRank> ranks;
    for (const Holding& holding : holdings) {
      const bool touches = defect.code == Code::kExtentMismatch
                               ? *holding.box == defect.where
                               : intersect(*holding.box, defect.where).has_value();
      if (touches) ranks.push_back(savers_.member(holding.rank));
    }
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    throw Error(defect.code, ranks.empty()
                                 ? defect.message
                                 : defect.message + "; offered by ranks " + join(ranks, " "));
  }

  void elect_owners(GlobalPlan& plan) {
    std::sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) {
      if (a.count != b.count) return a.count < b.count;
      if (a.bytes != b.bytes) return a.bytes > b.bytes;
      return a.tensor == b.tensor ? a.chunk < b.chunk : a.tensor < b.tensor;
    });
    const auto elect = policy_.elect == nullptr ? elect_least_loaded : policy_.elect;
    for (const Item& item : items_) {
      const auto candidates = std::span(candidates_).subspan(item.first, item.count);
      const GroupRank owner = elect(candidates, plan.bytes);
      PlannedTensor& tensor = plan.tensors[item.tensor];
      PlannedChunk& chunk = tensor.chunks[item.chunk];
      if (std::find(candidates.begin(), candidates.end(), owner) == candidates.end()) {
        throw Error(Code::kNoWriter,
                    "group rank " + std::to_string(owner.value) + " is to write " +
                        to_string(chunk.box) + ", which it does not hold",
                    {.key = tensor.key});
      }
      chunk.owner = owner;
      plan.bytes[static_cast<std::size_t>(owner.value)] += item.bytes;
    }
  }

  std::string name(GroupRank rank) const {
    return "rank " + std::to_string(savers_.member(rank).value);
  }
  static std::string to_words(const Dims& shape) { return to_string(shape); }
  static std::string to_words(DType dtype) { return std::string(name_of(dtype)); }

  const Group& savers_;
  const PlanPolicy& policy_;
  OfferBook book_;
  Layouts layouts_;
  std::vector<Holding> holdings_;  ///< of the key at hand, by box, then rank
  std::vector<Item> items_;
  std::vector<GroupRank> candidates_;
};

/// The digest that most ranks have is taken for the right one; among equals the lowest rank's.
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
              "the common state must be the same on all ranks, and ranks " + join(others, " ") +
                  " hold another one than the other " +
                  std::to_string(plans.size() - others.size()) +
                  "; give what differs between ranks as sharded objects",
              {.rank = others.front()});
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
                       const PlanPolicy& policy) {
  CHECK(!plans.empty() && static_cast<std::size_t>(savers.size()) == plans.size(), plans.size());
  check_common_state(plans, savers);
  GlobalPlan plan;
  plan.bytes.assign(plans.size(), 0);
  plan.signature = mix64(plans.size());
  for (const LocalPlan& local : plans) plan.signature = mix64(plan.signature, signature(local));
  Planner(plans, savers, policy).plan_tensors(plan);
  plan.objects = plan_objects(plans, savers);
  return plan;
}

GlobalPlan global_plan(std::span<const LocalPlan> plans, const PlanPolicy& policy) {
  return global_plan(plans, Group::world(static_cast<std::int32_t>(plans.size())), policy);
}

}  // namespace reprise
