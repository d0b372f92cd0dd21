// Laws of boxes, digests and plans.

#include <algorithm>
#include <map>

#include "core/digest/witness_digest.hpp"
#include "core/plan/save_plan.hpp"
#include "properties/content_digest.hpp"
#include "tests/laws/generators/states.hpp"
#include "tests/laws/law.hpp"

namespace reprise::laws {
namespace {

/// Returns how many of the boxes hold each element of a tensor of this shape.
std::vector<int> times_held(const Dims& shape, std::span<const Box> boxes) {
  std::vector<int> times(static_cast<std::size_t>(volume(shape)), 0);
  for (const auto& box : boxes) {
    for (std::int64_t i = 0; i < box.elements(); ++i) {
      Dims index = index_at(i, box.extent);
      for (std::size_t d = 0; d < index.size(); ++d) index[d] += box.offset[d];
      ++times[static_cast<std::size_t>(linear_index(index, shape))];
    }
  }
  return times;
}

bool held_once(const Dims& shape, std::span<const Box> boxes) {
  return std::ranges::all_of(times_held(shape, boxes), [](int times) { return times == 1; });
}

// --- boxes --------------------------------------------------------------------------------------

const Law kSubtract{"a hole and what is left of a box around it are the box, each element once",
                    400};

using Subtract = std::vector<Box> (*)(const Box&, const Box&);

std::function<void()> hole_and_rest(Subtract subtracted) {
  return [subtracted] {
    const Dims shape = *shapes({.ndim_least = 1});
    const Box hole = *boxes_within(shape);
    const Box whole = Box::whole(shape);
    std::vector<Box> boxes = subtracted(whole, hole);
    RC_CLASSIFY(hole.empty(), "an empty hole");
    RC_TAG(shape.size());
    RC_ASSERT(boxes.size() <= std::max<std::size_t>(1, 2 * shape.size()));
    boxes.push_back(hole);
    RC_ASSERT(held_once(shape, boxes));
  };
}

TEST(Laws, a_hole_and_what_is_left_of_a_box_are_the_box) {
  expect_law(kSubtract, hole_and_rest(subtract));
}

TEST(LawsCanFail, a_rest_without_its_last_box) {
  const auto found = expect_broken(kSubtract, hole_and_rest([](const Box& box, const Box& hole) {
                                     auto rest = subtract(box, hole);
                                     if (rest.size() > 1) rest.pop_back();
                                     return rest;
                                   }));
  // The smallest cases have two elements: on either side of an empty hole, or beside the hole.
  const bool two = found.find("[2]") != std::string::npos ||
                   found.find("[2, 1]") != std::string::npos ||
                   found.find("[1, 2]") != std::string::npos;
  EXPECT_TRUE(two) << found;
}

// --- digests ------------------------------------------------------------------------------------

const Law kPieces{"the digests of the boxes of a tensor add up to the tensor's digest", 300};

/// Returns bits of an element that no other element of the tensor has.
std::uint64_t bits_at(std::int64_t element) { return mix64(static_cast<std::uint64_t>(element)); }

/// Returns the elements of a box of an int64 tensor, row-major.
Bytes elements_of(const Dims& shape, const Box& box) {
  Bytes bytes;
  for (std::int64_t i = 0; i < box.elements(); ++i) {
    Dims index = index_at(i, box.extent);
    for (std::size_t d = 0; d < index.size(); ++d) index[d] += box.offset[d];
    const std::uint64_t bits = bits_at(linear_index(index, shape));
    for (unsigned b = 0; b < 8; ++b) bytes.push_back(static_cast<std::byte>(bits >> (8 * b)));
  }
  return bytes;
}

TEST(Laws, the_digests_of_a_tensors_boxes_add_up) {
  expect_law(kPieces, [] {
    const Dims shape = *shapes();
    const auto boxes = *tilings_of(shape);
    const std::uint64_t key = witness_key("w", "int64");
    const auto digest = [&](const Box& box) {
      return witness_digest(key, DType::kInt64, shape, box, elements_of(shape, box));
    };
    std::uint64_t sum = 0;
    for (const auto& box : boxes) sum += digest(box);
    RC_CLASSIFY(volume(shape) == 0, "an empty tensor");
    RC_TAG(boxes.size());
    RC_ASSERT(sum == digest(Box::whole(shape)));
  });
}

const Law kDigest{"the digest of a job's content knows no layout", 150};

std::uint64_t digest_over_ranks(const PlacedState& state, const LeafDigest& of_leaf) {
  std::uint64_t sum = 0;
  for (std::int32_t rank = 0; rank < state.ranks(); ++rank) {
    const auto part = state.of(GlobalRank{rank});
    testing_job::fill(part->state);
    sum += content_digest(part->state, of_leaf);
  }
  return sum;
}

std::function<void()> same_digest(const LeafDigest& of_leaf) {
  return [of_leaf] {
    const PlacedState left = *placed_states();
    const PlacedState right = *elsewhere(left);
    RC_TAG(std::to_string(left.ranks()) + " ranks, then " + std::to_string(right.ranks()));
    RC_ASSERT(digest_over_ranks(left, of_leaf) == digest_over_ranks(right, of_leaf));
  };
}

TEST(Laws, the_digest_knows_no_layout) { expect_law(kDigest, same_digest(host_leaf_digest)); }

TEST(LawsCanFail, a_digest_of_local_positions) {
  const auto found =
      expect_broken(kDigest, same_digest([](const TensorLeaf& leaf, std::uint64_t key) {
                      TensorLeaf moved = leaf;
                      for (auto& piece : moved.pieces) {
                        piece.box.offset = Dims::filled(piece.box.ndim(), 0);
                      }
                      return host_leaf_digest(moved, key);
                    }));
  // The smallest case has one axis, which cuts a tensor of two elements.
  EXPECT_NE(found.find("[2] as "), std::string::npos) << found;
}

// --- plans --------------------------------------------------------------------------------------

const Law kPlan{"a plan covers each element once, and one holder of it writes it", 200};

GlobalPlan plan_of(const PlacedState& state, ChunkRule rule) {
  std::vector<LocalPlan> plans;
  for (std::int32_t rank = 0; rank < state.ranks(); ++rank) {
    plans.push_back(local_plan(state.of(GlobalRank{rank})->state, GlobalRank{rank}, rule));
  }
  return global_plan(plans, state.mesh->members(), nullptr, rule);
}

bool holds(const PlacedState& state, const PlannedTensor& planned, GroupRank owner,
           const Box& box) {
  const auto spec = std::ranges::find(state.tensors, planned.key, &TensorSpec::key);
  return spec->placement.box(spec->shape, *state.mesh, owner) == box;
}

std::function<void()> covers_and_owns(ChunkRule rule) {
  return [rule] {
    const PlacedState state = *placed_states();
    const GlobalPlan plan = plan_of(state, rule);
    RC_TAG(std::to_string(state.ranks()) + " ranks");
    RC_ASSERT(plan.tensors.size() == state.tensors.size());
    std::vector<std::uint64_t> bytes(static_cast<std::size_t>(state.ranks()), 0);
    for (const auto& tensor : plan.tensors) {
      RC_ASSERT(held_once(tensor.shape, *tensor.boxes));
      RC_ASSERT(tensor.owners.size() == tensor.boxes->size());
      for (std::size_t i = 0; i < tensor.owners.size(); ++i) {
        RC_ASSERT(holds(state, tensor, tensor.owners[i], (*tensor.boxes)[i]));
        bytes[static_cast<std::size_t>(tensor.owners[i].value)] +=
            static_cast<std::uint64_t>((*tensor.boxes)[i].elements()) * size_of(tensor.dtype);
      }
    }
    RC_ASSERT(plan.bytes == bytes);
  };
}

TEST(Laws, a_plan_covers_and_owns_once) { expect_law(kPlan, covers_and_owns(ceil_chunk)); }

TEST(LawsCanFail, a_plan_that_describes_by_another_rule_than_the_job_cuts) {
  const auto floor_chunk = [](std::int64_t length, std::int64_t parts, std::int64_t index) {
    const std::int64_t size = length / parts;
    return Interval{index * size, index + 1 == parts ? length : (index + 1) * size};
  };
  expect_broken(kPlan, covers_and_owns(floor_chunk));
}

}  // namespace
}  // namespace reprise::laws
