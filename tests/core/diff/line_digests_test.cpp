// Tests that digests of lines do not depend on how a tensor comes, and follow its lines.

#include "core/diff/line_digests.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "core/geometry/blocks.hpp"

namespace reprise::test::line_digests_test {
namespace {

std::uint16_t number_at(const Dims& index) {
  std::uint16_t number = 1;
  for (const std::int64_t i : index) number = static_cast<std::uint16_t>(number * 31 + i);
  return number;
}

/// Digests of a tensor whose elements come from `at`, in blocks of at most so many elements.
template <class At>
LineDigests& add_all(LineDigests& digests, std::int64_t elements_max, const At& at) {
  std::vector<std::uint64_t> scratch;
  for_each_block(digests.shape(), elements_max, [&](const Box& box) {
    Bytes bytes(static_cast<std::size_t>(box.elements()) * 2);
    for (std::int64_t i = 0; i < box.elements(); ++i) {
      Dims index = index_at(i, box.extent);
      for (std::size_t d = 0; d < index.size(); ++d) index[d] += box.offset[d];
      const std::uint16_t number = at(index);
      std::memcpy(bytes.data() + 2 * i, &number, 2);
    }
    digests.add(box, bytes, scratch);
  });
  return digests;
}

TEST(LineDigests, boxes_of_any_size_add_up_to_the_same) {
  for (const Dims& shape : {Dims{7}, Dims{5, 6}, Dims{2, 3, 4}, Dims{2, 2, 3, 2}}) {
    LineDigests whole(shape, 2, true);
    add_all(whole, volume(shape), number_at);
    for (const std::int64_t most : {1, 2, 5, 8}) {
      LineDigests parts(shape, 2, true);
      add_all(parts, most, number_at);
      EXPECT_EQ(parts.whole(), whole.whole());
      EXPECT_EQ(parts.transposed(), whole.transposed());
      for (std::size_t d = 0; d < shape.size(); ++d) EXPECT_EQ(parts.along(d), whole.along(d));
    }
  }
}

TEST(LineDigests, a_transposed_tensor_has_the_digest_that_was_foretold) {
  const Dims shape{2, 3, 4};
  const Dims exchanged{2, 4, 3};
  LineDigests one(shape, 2, true);
  LineDigests other(exchanged, 2, true);
  add_all(one, 5, number_at);
  add_all(other, 7, [](const Dims& i) { return number_at({i[0], i[2], i[1]}); });
  EXPECT_EQ(one.transposed(), other.whole());
  EXPECT_EQ(one.whole(), other.transposed());
  EXPECT_NE(one.whole(), other.whole());
}

TEST(LineDigests, a_slice_keeps_its_digest_where_it_goes) {
  const Dims shape{3, 4, 5};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    LineDigests one(shape, 2, true);
    LineDigests other(shape, 2, true);
    add_all(one, 6, number_at);
    add_all(other, 6, [&](Dims i) {
      i[d] = (i[d] + 1) % shape[d];
      return number_at(i);
    });
    const auto before = one.along(d);
    const auto after = other.along(d);
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(after[i], before[(i + 1) % before.size()]) << d;
    }
  }
}

TEST(LineDigests, only_a_tensor_of_one_value_is_constant) {
  for (const bool varied : {false, true}) {
    LineDigests digests({4, 4}, 2, true);
    add_all(digests, 4, [varied](const Dims& i) {
      return static_cast<std::uint16_t>(varied && i[0] == 3 ? 2 : 1);
    });
    EXPECT_EQ(digests.constant(), !varied);
  }
}

}  // namespace
}  // namespace reprise::test::line_digests_test
