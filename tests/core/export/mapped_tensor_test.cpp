// Tests the steps of mapped tensors against a model that moves elements one by one, with random
// chains of steps, and the way back.

#include "core/export/mapped_tensor.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/geometry/piece.hpp"
#include "tests/contracts/error_of.hpp"

namespace reprise {
namespace {

/// A tensor of numbers, which says of each element from which element of the stored tensor it is.
struct Model {
  Dims shape;
  std::vector<std::int64_t> values;
};

Model model_of(const Dims& shape) {
  Model model{shape, std::vector<std::int64_t>(static_cast<std::size_t>(volume(shape)))};
  std::iota(model.values.begin(), model.values.end(), 0);
  return model;
}

/// Makes a model of shape `shape`, whose element at `index` is that of `model` at from(index).
template <class From>
Model remapped(const Model& model, const Dims& shape, const From& from) {
  Model result{shape, {}};
  for (std::int64_t i = 0; i < volume(shape); ++i) {
    result.values.push_back(
        model
            .values[static_cast<std::size_t>(linear_index(from(index_at(i, shape)), model.shape))]);
  }
  return result;
}

StoredTensor stored(const Dims& shape) {
  StoredTensor tensor;
  tensor.key = "w";
  tensor.dtype = DType::kInt64;
  tensor.shape = shape;
  return tensor;
}

/// Reads all elements as export does, `step` at a time.
std::vector<std::int64_t> read(const MappedTensor& tensor, const Model& source, std::int64_t step) {
  std::vector<std::int64_t> values;
  const std::int64_t count = volume(tensor.shape);
  for (std::int64_t begin = 0; begin < count; begin += step) {
    const std::int64_t end = std::min(begin + step, count);
    std::vector<std::int64_t> local(static_cast<std::size_t>(end - begin), 0);
    for (const auto& [of, piece] : sources_of(tensor, begin, end)) {
      for (std::int64_t i = 0; i < piece.box.elements(); ++i) {
        Dims index = index_at(i, piece.box.extent);
        for (std::size_t d = 0; d < index.size(); ++d) index[d] += piece.box.offset[d];
        local.at(static_cast<std::size_t>(local_offset(piece, index))) =
            source.values[static_cast<std::size_t>(linear_index(index, source.shape))];
      }
    }
    values.insert(values.end(), local.begin(), local.end());
  }
  return values;
}

RC_GTEST_PROP(MappedTensor, chains_of_steps_move_elements_as_a_model_does, ()) {
  const auto extent = rc::gen::inRange<std::int64_t>(1, 5);
  const auto extents =
      *rc::gen::resize(4, rc::gen::nonEmpty(rc::gen::container<std::vector<std::int64_t>>(extent)));
  const Dims shape(
      std::span<const std::int64_t>(extents).first(std::min<std::size_t>(extents.size(), 4)));
  const Model source = model_of(shape);
  MappedTensor tensor = mapped(stored(shape), 0);
  Model model = source;
  const int steps = *rc::gen::inRange(0, 6);
  for (int s = 0; s < steps; ++s) {
    const std::size_t ndim = model.shape.size();
    const int kind = *rc::gen::inRange(0, 5);
    if (kind == 4) {
      const auto at = *rc::gen::inRange<std::size_t>(0, ndim + 1);
      if (ndim == 6) continue;
      tensor = with_dim(tensor, at);
      Dims longer;
      for (std::size_t d = 0; d <= ndim; ++d) {
        if (d == at) longer.push_back(1);
        if (d < ndim) longer.push_back(model.shape[d]);
      }
      model.shape = longer;
      continue;
    }
    if (ndim == 0) continue;
    const auto dim = *rc::gen::inRange<std::size_t>(0, ndim);
    if (kind == 0) {
      const auto begin = *rc::gen::inRange<std::int64_t>(0, model.shape[dim]);
      const auto end = *rc::gen::inRange<std::int64_t>(begin + 1, model.shape[dim] + 1);
      tensor = narrowed(tensor, dim, {begin, end});
      Dims narrow = model.shape;
      narrow[dim] = end - begin;
      model = remapped(model, narrow, [&](Dims index) {
        index[dim] += begin;
        return index;
      });
    } else if (kind == 1) {
      Dims order = Dims::filled(ndim, 0);
      std::iota(order.begin(), order.end(), 0);
      const auto other = *rc::gen::inRange<std::size_t>(0, ndim);
      std::swap(order[dim], order[other]);
      tensor = transposed(tensor, order);
      Dims turned = model.shape;
      std::swap(turned[dim], turned[other]);
      model = remapped(model, turned, [&](Dims index) {
        std::swap(index[dim], index[other]);
        return index;
      });
    } else if (kind == 2) {
      const std::vector<MappedTensor> twice = {tensor, tensor};
      const std::int64_t half = model.shape[dim];
      if (volume(model.shape) > 2000) continue;
      tensor = joined(twice, dim);
      Dims longer = model.shape;
      longer[dim] *= 2;
      model = remapped(model, longer, [&](Dims index) {
        index[dim] %= half;
        return index;
      });
    } else if (model.shape[dim] == 1) {
      tensor = without_dim(tensor, dim);
      Dims shorter;
      for (std::size_t d = 0; d < ndim; ++d) {
        if (d != dim) shorter.push_back(model.shape[d]);
      }
      model.shape = shorter;
    }
  }
  RC_ASSERT(tensor.shape == model.shape);
  RC_ASSERT(read(tensor, source, *rc::gen::inRange<std::int64_t>(1, 40)) == model.values);

  // The way back finds, for each part, the elements at their places in the stored tensor.
  std::vector<MappedBack> back;
  for (const auto& part : tensor.parts) back.push_back({0, part});
  const auto begin = *rc::gen::inRange<std::int64_t>(0, volume(shape));
  const auto end = *rc::gen::inRange<std::int64_t>(begin + 1, volume(shape) + 1);
  std::int64_t found = 0;
  for (const auto& [of, piece] : targets_of(shape, back, begin, end)) {
    for (std::int64_t i = 0; i < piece.box.elements(); ++i, ++found) {
      Dims index = index_at(i, piece.box.extent);
      for (std::size_t d = 0; d < index.size(); ++d) index[d] += piece.box.offset[d];
      const auto value = model.values[static_cast<std::size_t>(linear_index(index, model.shape))];
      RC_ASSERT(local_offset(piece, index) == value - begin);
    }
  }
  RC_ASSERT(found == std::ranges::count_if(
                         model.values, [&](auto value) { return value >= begin && value < end; }));
}

TEST(MappedTensor, split_takes_each_group_apart_and_interleaved_joins_them) {
  // Two groups of q (2 heads), k and v; a head has 2 rows.
  const MappedTensor qkv = mapped(stored({16, 3}), 0);
  const auto parts = split(qkv, 0, 2, std::vector<std::int64_t>{2, 1, 1});
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].shape, Dims({8, 3}));
  EXPECT_EQ(parts[1].shape, Dims({4, 3}));
  const Model source = model_of({16, 3});
  std::vector<std::int64_t> q(24);
  std::iota(q.begin(), q.begin() + 12, 0);
  std::iota(q.begin() + 12, q.end(), 24);
  EXPECT_EQ(read(parts[0], source, 7), q);
  EXPECT_EQ(read(interleaved(parts, 0, 2), source, 5), source.values);
  EXPECT_NE(read(interleaved(parts, 0, 1), source, 5), source.values) << "q, k, v, whole";
}

TEST(MappedTensor, says_which_tensor_a_step_does_not_fit) {
  const MappedTensor tensor = mapped(stored({6, 4}), 0);
  const auto refused = [&](const auto& step) {
    const auto error = contracts::error_of(step);
    EXPECT_EQ(error.value().code(), Code::kUsage);
    EXPECT_EQ(error.value().place().key, "w");
    return error.value().message();
  };
  EXPECT_EQ(refused([&] {
              narrowed(tensor, 2, {0, 1});
            }),
            "the tensor has no dimension 2; its shape here is [6, 4]");
  EXPECT_EQ(refused([&] {
              narrowed(tensor, 0, {0, 7});
            }),
            "dimension 0 has no elements 0 to 7; its shape here is [6, 4]");
  refused([&] { transposed(tensor, {0, 0}); });
  refused([&] { transposed(tensor, {0}); });
  refused([&] { without_dim(tensor, 0); });
  refused([&] { padded(tensor, 0, 5); });
  EXPECT_EQ(refused([&] {
              split(tensor, 0, 4, std::vector<std::int64_t>{1, 1});
            }),
            "dimension 0 can't be cut into 4 blocks of 2 equal shares; its shape here is [6, 4]");
  refused([&] { split(tensor, 0, 1, std::vector<std::int64_t>{1, 0}); });
  refused([&] { split(mapped(stored({0, 4}), 0), 0, 5, std::vector<std::int64_t>{1}); });
  const std::vector<MappedTensor> unlike = {tensor, mapped(stored({6, 5}), 0)};
  refused([&] { joined(unlike, 0); });
}

}  // namespace
}  // namespace reprise
