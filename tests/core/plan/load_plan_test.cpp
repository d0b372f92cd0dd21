#include "core/plan/load_plan.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

#include "core/base/random.hpp"
#include "tests/laws/generators/geometry.hpp"

namespace reprise {
namespace {

TensorLeaf want(const std::string& key, const Dims& shape, const std::vector<Box>& boxes) {
  TensorLeaf leaf;
  leaf.key = key;
  leaf.shape = shape;
  for (const Box& box : boxes) leaf.pieces.push_back(contiguous_piece(box));
  return leaf;
}

StoredTensor stored(const std::string& key, const Dims& shape, const std::vector<Box>& boxes) {
  StoredTensor tensor{key, DType::kFloat32, shape, {}, {}};
  std::uint64_t offset = 0;
  for (const Box& box : boxes) {
    tensor.chunks.push_back({box, 0, {offset, 100}});
    offset += 100;
  }
  return tensor;
}

/// Follows the plan element by element. Counts how often each wanted element is delivered, and
/// records which stored elements are read. Elements are identified by their row-major number in the
/// tensor.
struct Delivery {
  std::map<std::pair<std::uint32_t, std::int64_t>, int> times;   ///< by piece and element
  std::set<std::tuple<std::uint32_t, std::int64_t>> bytes_read;  ///< by chunk and element
  bool from_the_right_place = true;
};

Delivery deliver(const LoadPlan& plan, const TensorLeaf& leaf, const StoredTensor& tensor) {
  Delivery delivery;
  for (const ChunkRead& read : plan.reads) {
    const auto sources = pieces_of(tensor, tensor.chunks[read.chunk]);
    for (const LoadTarget& target : read.targets) {
      for (std::int64_t i = 0; i < target.region.elements(); ++i) {
        Dims index = index_at(i, target.region.extent);
        for (std::size_t d = 0; d < index.size(); ++d) index[d] += target.region.offset[d];
        const Box element{index, Dims::filled(index.size(), 1)};
        delivery.from_the_right_place &= contains(sources.at(target.source).box, element) &&
                                         contains(leaf.pieces.at(target.piece).box, element);
        const std::int64_t number = linear_index(index, leaf.shape);
        ++delivery.times[{target.piece, number}];
        delivery.bytes_read.insert({read.chunk, number});
      }
    }
  }
  return delivery;
}

void expect_exact(const LoadPlan& plan, const TensorLeaf& leaf, const StoredTensor& tensor) {
  RC_ASSERT(plan.mismatches.empty());
  const Delivery delivery = deliver(plan, leaf, tensor);
  RC_ASSERT(delivery.from_the_right_place);
  std::size_t wanted = 0;
  std::set<std::int64_t> distinct;
  for (std::uint32_t p = 0; p < leaf.pieces.size(); ++p) {
    const Box& box = leaf.pieces[p].box;
    for (std::int64_t i = 0; i < box.elements(); ++i) {
      Dims index = index_at(i, box.extent);
      for (std::size_t d = 0; d < index.size(); ++d) index[d] += box.offset[d];
      const auto found = delivery.times.find({p, linear_index(index, leaf.shape)});
      RC_ASSERT(found != delivery.times.end());
      RC_ASSERT(found->second == 1);
      distinct.insert(linear_index(index, leaf.shape));
      ++wanted;
    }
  }
  RC_ASSERT(delivery.times.size() == wanted);
  RC_ASSERT(plan.elements == distinct.size());
  RC_ASSERT(plan.bytes_needed == 4 * delivery.bytes_read.size());
  RC_ASSERT(plan.bytes_needed == 4 * distinct.size());
  for (std::size_t r = 1; r < plan.reads.size(); ++r) {
    const auto& before = tensor.chunks[plan.reads[r - 1].chunk];
    const auto& after = tensor.chunks[plan.reads[r].chunk];
    RC_ASSERT(std::pair(before.file, before.range.offset) <
              std::pair(after.file, after.range.offset));
  }
}

RC_GTEST_PROP(LoadPlan, each_wanted_element_comes_once_from_where_it_is_stored,
              (std::uint64_t seed)) {
  Stream random(seed);
  const Dims shape = *laws::shapes({.extent_most = 5});
  auto tensor = stored("w", shape, *laws::tilings_of(shape, 8));
  for (auto& chunk : tensor.chunks) {
    chunk.file = static_cast<FileIndex>(random.below(3));
    chunk.range.offset += 1000 * random.below(5);
  }
  std::vector<Box> boxes;
  for (std::uint64_t n = random.below(5); n > 0; --n) boxes.push_back(*laws::boxes_within(shape));
  const TensorLeaf leaf = want("w", shape, boxes);
  Catalog catalog;
  catalog.files = {"a", "b", "c"};
  catalog.tensors = {tensor};
  expect_exact(load_plan(std::vector{leaf}, {}, catalog), leaf, tensor);
}

RC_GTEST_PROP(LoadPlan, flattened_tensors_give_each_element_once, (std::uint64_t seed)) {
  Stream random(seed);
  const Dims original = {4, 6};
  const Dims cuts = {static_cast<std::int64_t>(1 + random.below(2)),
                     static_cast<std::int64_t>(1 + random.below(3))};
  const std::int64_t block = 24 / volume(cuts);
  StoredTensor tensor{"w", DType::kFloat32, {cuts[0], cuts[1], block}, {}, original};
  std::uint64_t offset = 0;
  for (std::int64_t b = 0; b < volume(cuts); ++b) {
    const Dims at = index_at(b, cuts);
    for (const Box& range : *laws::tilings_of({block}, 3)) {
      tensor.chunks.push_back(
          {{{at[0], at[1], range.offset[0]}, {1, 1, range.extent[0]}}, 0, {offset++, 1}});
    }
  }
  const TensorLeaf leaf =
      want("w", original, {*laws::boxes_within(original), *laws::boxes_within(original)});
  Catalog catalog;
  catalog.files = {"a"};
  catalog.tensors = {tensor};
  expect_exact(load_plan(std::vector{leaf}, {}, catalog), leaf, tensor);
}

TEST(LoadPlan, names_requests_that_cannot_be_met_and_reads_nothing_for_them) {
  Catalog catalog;
  catalog.files = {"a"};
  catalog.tensors = {stored("gap", {4}, {{{0}, {3}}}), stored("none", {2}, {{{0}, {2}}}),
                     stored("shape", {4}, {{{0}, {4}}}),
                     stored("twice", {2}, {{{0}, {2}}, {{1}, {1}}}),
                     stored("type", {4}, {{{0}, {4}}})};
  catalog.tensors[1].chunks[0].file = kNoFile;
  std::vector<TensorLeaf> wanted = {
      want("absent", {4}, {{{0}, {4}}}), want("gap", {4}, {{{0}, {4}}}),
      want("none", {2}, {{{0}, {2}}}),   want("shape", {2, 2}, {{{0, 0}, {2, 2}}}),
      want("twice", {2}, {{{0}, {2}}}),  want("type", {4}, {{{0}, {4}}})};
  wanted.back().dtype = DType::kBFloat16;
  const LoadPlan plan = load_plan(wanted, {}, catalog);
  EXPECT_TRUE(plan.reads.empty());
  EXPECT_EQ(plan.elements, 0U);
  std::vector<std::pair<std::string, Code>> found;
  for (const auto& mismatch : plan.mismatches) found.emplace_back(mismatch.key, mismatch.code);
  EXPECT_EQ(found, (std::vector<std::pair<std::string, Code>>{{"absent", Code::kNotStored},
                                                              {"gap", Code::kCoverageGap},
                                                              {"none", Code::kCoverageGap},
                                                              {"shape", Code::kShapeDrift},
                                                              {"twice", Code::kChunkOverlap},
                                                              {"type", Code::kDtypeDrift}}));
}

TEST(LoadPlan, lists_what_nobody_asks_for_but_the_common_state) {
  Catalog catalog;
  catalog.tensors = {stored("a", {1}, {{{0}, {1}}}), stored("z", {1}, {{{0}, {1}}})};
  catalog.objects = {
      {"common_state/shard_0_1", 0, {}}, {"rng/shard_0_2", 0, {}}, {"rng/shard_1_2", 0, {}}};
  const std::vector<TensorLeaf> wanted = {want("z", {1}, {})};
  const std::vector<ObjectLeaf> objects = {{"rng", {2}, {1}, 0, {}}};
  const LoadPlan plan = load_plan(wanted, objects, catalog);
  EXPECT_EQ(plan.not_requested, (std::vector<std::string>{"a", "rng/shard_0_2"}));
  EXPECT_TRUE(plan.mismatches.empty());
}

TEST(LoadPlan, objects_of_older_files_lack_the_last_extent_of_their_grid) {
  Catalog catalog;
  catalog.objects = {{"rng/shard_0.1.0_1.2", 0, {}}};
  const std::vector<ObjectLeaf> objects = {{"rng", {1, 2, 4}, {0, 1, 0}, 0, {}},
                                           {"rng", {1, 2, 4}, {0, 1, 1}, 0, {}}};
  const LoadPlan plan = load_plan({}, objects, catalog);
  ASSERT_EQ(plan.mismatches.size(), 1U);
  EXPECT_EQ(plan.mismatches[0].key, "rng/shard_0.1.1_1.2.4");
  EXPECT_TRUE(plan.not_requested.empty());
}

}  // namespace
}  // namespace reprise
