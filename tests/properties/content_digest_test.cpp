#include "properties/content_digest.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "tests/core/geometry/small_worlds.hpp"
#include "tests/properties/small_job.hpp"

namespace reprise {
namespace {

using test::fill;
using test::OneRank;

/// Returns the digest of a job, which is the sum of the digests of all members of a mesh. Sums the
/// two halves of the digests separately, as a job does.
std::uint64_t digest_of_job(const Mesh& mesh, const Placement& placement, DType dtype,
                            const Dims& shape) {
  std::array<std::int64_t, 2> sums{};
  for (std::int32_t m = 0; m < mesh.size(); ++m) {
    OneRank rank(m);
    const GroupRank member{m};
    fill(rank.add("w", dtype, shape, {placement.box(shape, mesh, member)},
                  placement.replica(mesh, member)));
    const auto halves = halves_of(content_digest(rank.state));
    for (std::size_t i = 0; i < 2; ++i) sums[i] += halves[i];
  }
  return digest_of(sums);
}

TEST(ContentDigest, is_the_same_under_every_sharding_of_every_small_mesh) {
  struct Row {
    DType dtype;
    Dims shape;
  };
  const Row rows[] = {{DType::kFloat32, {5, 3}},
                      {DType::kBool, {4, 2}},
                      {DType::kInt64, {7}},
                      {DType::kComplex128, {}},
                      {DType::kBFloat16, {0, 3}}};
  int shardings = 0;
  for (const Row& row : rows) {  // clang can't capture structured bindings
    const Dims& shape = row.shape;
    std::optional<std::uint64_t> whole;
    test::for_each_world(2, 3, [&](const test::World& world) {
      test::for_each_placement(
          world, static_cast<int>(shape.size()),
          [&](const Placement& placement, const brute::Splits&) {
            const auto digest = digest_of_job(world.mesh, placement, row.dtype, shape);
            if (!whole) whole = digest;
            ASSERT_EQ(digest, *whole) << placement << " on " << world.mesh << " of " << shape;
            ++shardings;
          });
    });
  }
  EXPECT_GT(shardings, 400);
}

TEST(ContentDigest, is_equal_for_flattened_ranges_and_for_strided_pieces) {
  const Dims shape{4, 3};
  OneRank whole(0);
  fill(whole.add("w", DType::kFloat32, shape, {Box::whole(shape)}));
  const auto expected = content_digest(whole.state);

  for (std::int64_t cut = 0; cut <= 12; ++cut) {
    OneRank low(0);
    OneRank high(1);
    fill(low.add("w", DType::kFloat32, shape, boxes_of_range(Box::whole(shape), 0, cut)));
    fill(high.add("w", DType::kFloat32, shape, boxes_of_range(Box::whole(shape), cut, 12)));
    EXPECT_EQ(content_digest(low.state) + content_digest(high.state), expected) << cut;
  }

  OneRank transposed(0);
  TensorLeaf& leaf = transposed.add("w", DType::kFloat32, shape, {Box::whole(shape)});
  leaf.pieces[0].strides = {1, 4};
  fill(leaf);
  EXPECT_EQ(content_digest(transposed.state), expected);
}

TEST(ContentDigest, sees_every_byte_of_every_element_and_where_it_stands) {
  const Dims shape{2, 3};
  OneRank rank(0);
  fill(rank.add("w", DType::kFloat32, shape, {Box::whole(shape)}));
  std::byte* data = rank.state.tensors[0].data;
  std::set<std::uint64_t> digests = {content_digest(rank.state)};
  for (std::size_t at = 0; at < 24; ++at) {
    data[at] ^= std::byte{0x80};
    EXPECT_TRUE(digests.insert(content_digest(rank.state)).second) << at;
    data[at] ^= std::byte{0x80};
  }
  std::swap_ranges(data, data + 4, data + 8);
  EXPECT_TRUE(digests.insert(content_digest(rank.state)).second) << "two elements are swapped";
  std::swap_ranges(data, data + 4, data + 8);
  rank.state.tensors[0].key = "v";
  EXPECT_TRUE(digests.insert(content_digest(rank.state)).second) << "another key";
  rank.state.tensors[0].key = "w";
  rank.state.tensors[0].dtype = DType::kInt32;
  EXPECT_TRUE(digests.insert(content_digest(rank.state)).second) << "another type, same bits";
}

TEST(ContentDigest, halves_add_up_over_as_many_ranks_as_there_can_be) {
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  constexpr std::int64_t kRanks = std::int64_t{1} << 31;
  const auto halves = halves_of(kMost);
  EXPECT_LE(halves[0], std::numeric_limits<std::int64_t>::max() / kRanks);
  EXPECT_EQ(digest_of({halves[0] * kRanks, halves[1] * kRanks}),
            kMost * static_cast<std::uint64_t>(kRanks));
}

TEST(ContentDigest, of_values_does_not_depend_on_the_order_of_entries) {
  const Value one = Dict{{"a", 1}, {"b", List{2, 3}}};
  const Value other = Dict{{"b", List{2, 3}}, {"a", 1}};
  EXPECT_EQ(value_digest(one), value_digest(other));
  EXPECT_NE(value_digest(one), value_digest(Dict{{"a", 1}, {"b", List{3, 2}}}));
}

}  // namespace
}  // namespace reprise
