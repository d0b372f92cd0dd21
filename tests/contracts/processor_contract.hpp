#pragma once
// Contains the tests that every processor of a job must pass: a processor must compute the same
// bits as plain loops over indices. A test file defines an `Owner` with the function
// `sim::Processor* processor()`. This returns nullptr if the machine lacks such a processor; the
// test is then skipped.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "sim/job/model/array.hpp"
#include "sim/job/model/local_tensor.hpp"
#include "sim/job/model/parameter.hpp"
#include "sim/job/optimizer/optimizer_shard.hpp"

namespace reprise::contracts {

/// Boxes of a local array. A share may store their elements in either of two forms: packed in a
/// buffer, or in place in the array.
struct ProcessorCase {
  const char* name;
  Dims shape;
  sim::LocalTensor tensor;
  std::vector<Box> boxes;

  std::vector<Piece> packed() const { return sim::pieces_packed(tensor, boxes); }
  std::vector<Piece> in_place() const { return sim::pieces_in_place(tensor, boxes); }
  std::size_t packed_size() const { return static_cast<std::size_t>(sim::elements_of(boxes)); }
  std::size_t local_size() const { return static_cast<std::size_t>(volume(tensor.shape)); }
};

inline std::vector<ProcessorCase> processor_cases() {
  const auto whole = [](const char* name, const Dims& shape) {
    ProcessorCase one{name, shape, {shape, {}}, {Box::whole(shape)}};
    for (const auto extent : shape) one.tensor.global.push_back({{0, extent}});
    return one;
  };
  const sim::LocalTensor fused{{8, 3}, {{{3, 7}, {11, 15}}, {{2, 5}}}};  // part of shape [16, 6]
  const Box local = Box::whole(fused.shape);
  const sim::LocalTensor experts{{3, 4, 5}, {{{6, 9}}, {{0, 2}, {8, 10}}, {{1, 6}}}};
  return {whole("all of it", {7, 5}),
          whole("one element", {}),
          whole("of no elements", {0, 3}),
          whole("more than a block", {301, 257}),
          {"some columns", {6, 8}, {{6, 8}, {{{0, 6}}, {{0, 8}}}}, {{{0, 3}, {6, 4}}}},
          {"columns of no round number",
           {19, 333},
           {{19, 333}, {{{0, 19}}, {{0, 333}}}},
           {{{0, 7}, {19, 195}}}},
          {"long rows",
           {3, 20'000},
           {{3, 20'000}, {{{0, 3}}, {{0, 20'000}}}},
           {{{0, 5'000}, {3, 14'001}}}},
          {"two halves", {16, 6}, fused, {local}},
          {"a flat range of two halves", {16, 6}, fused, boxes_of_range(local, 2, 19)},
          {"a flat range of stacked experts",
           {9, 10, 6},
           experts,
           boxes_of_range(Box::whole(experts.shape), 7, 58)}};
}

/// Returns arbitrary bits, which are the same in each run. Some are NaNs, infinities, subnormals or
/// zeros.
template <class T>
std::vector<T> any_values(std::size_t size, std::string_view name) {
  constexpr std::uint32_t kSpecial[] = {0x7fc00001, 0x7f800000, 0xff800000, 0x00010000, 0x80000000};
  const Stream stream = Stream(3).split(name);
  std::vector<T> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    float value = sim::unit_of(stream.at(i));
    if (i % 13 == 5) value = std::bit_cast<float>(kSpecial[i / 13 % 5]);
    if constexpr (std::is_same_v<T, float>) {
      values[i] = value;
    } else {
      values[i] = sim::to_bf16(value);
    }
  }
  return values;
}

/// Compares bits, but treats all NaNs as equal.
inline void expect_same(const std::vector<float>& got, const std::vector<float>& right) {
  ASSERT_EQ(got.size(), right.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(right[i])) continue;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(right[i])) << i;
  }
}
inline void expect_same(const std::vector<std::uint16_t>& got,
                        const std::vector<std::uint16_t>& right) {
  ASSERT_EQ(got.size(), right.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(sim::from_bf16(got[i])) && std::isnan(sim::from_bf16(right[i]))) continue;
    ASSERT_EQ(got[i], right[i]) << i;
  }
}

/// Visits the elements one by one: calls visit(global index, offset in a, offset in b).
template <class Visit>
void for_each_index(const Dims& shape, const std::vector<Piece>& a, const std::vector<Piece>& b,
                    const Visit& visit) {
  for (std::size_t p = 0; p < a.size(); ++p) {
    for (std::int64_t i = 0; i < a[p].box.elements(); ++i) {
      Dims index = index_at(i, a[p].box.extent);
      for (std::size_t d = 0; d < index.size(); ++d) index[d] += a[p].box.offset[d];
      visit(linear_index(index, shape), static_cast<std::size_t>(local_offset(a[p], index)),
            static_cast<std::size_t>(local_offset(b[p], index)));
    }
  }
}

template <class Owner>
class ProcessorContract : public testing::Test {
 protected:
  void for_each_case(
      const std::function<void(sim::Processor& processor, const ProcessorCase& one)>& body) {
    if (owner_.processor() == nullptr) GTEST_SKIP() << "no GPU: CUDA sees no device";
    for (const auto& one : processor_cases()) {
      SCOPED_TRACE(one.name);
      body(*owner_.processor(), one);
    }
  }
  template <class T>
  static sim::Array<T> array_of(sim::Processor& processor, const std::vector<T>& values) {
    sim::Array<T> array(processor, values.size());
    array.assign(values);
    return array;
  }
  static std::int64_t live_of(const ProcessorCase& one) { return volume(one.shape) * 3 / 4; }

  Owner owner_;
};

TYPED_TEST_SUITE_P(ProcessorContract);

TYPED_TEST_P(ProcessorContract, arrays_take_fill_clone_and_give_back_their_content) {
  this->for_each_case([](sim::Processor& processor, const ProcessorCase& one) {
    const auto values = any_values<float>(one.packed_size(), "array");
    auto array = TestFixture::array_of(processor, values);
    const auto other = array.clone();
    EXPECT_EQ(array.bytes(), other.bytes());
    expect_same(other.values(), values);
    array.fill(1.5F);
    EXPECT_EQ(array.values(), std::vector<float>(values.size(), 1.5F));
    expect_same(other.values(), values);
  });
}

TYPED_TEST_P(ProcessorContract, boxes_are_copied_to_and_from_a_packed_buffer) {
  this->for_each_case([](sim::Processor& processor, const ProcessorCase& one) {
    const auto local = any_values<std::uint16_t>(one.local_size(), "local");
    const auto array = TestFixture::array_of(processor, local);
    sim::Array<std::uint16_t> packed(processor, one.packed_size());
    processor.copy(sim::packing(one.tensor.shape, one.boxes, array.address_of(0),
                                packed.address_of(0), sizeof(std::uint16_t)));
    std::vector<std::uint16_t> right(one.packed_size());
    for_each_index(one.shape, one.packed(), one.in_place(),
                   [&](std::int64_t, std::size_t a, std::size_t b) { right[a] = local[b]; });
    EXPECT_EQ(packed.values(), right);

    sim::Array<std::uint16_t> back(processor, one.local_size());
    back.fill(0x1234);
    processor.copy(sim::unpacking(one.tensor.shape, one.boxes, packed.address_of(0),
                                  back.address_of(0), sizeof(std::uint16_t)));
    std::vector<std::uint16_t> whole(one.local_size(), 0x1234);
    for_each_index(one.shape, one.packed(), one.in_place(),
                   [&](std::int64_t, std::size_t a, std::size_t b) { whole[b] = right[a]; });
    EXPECT_EQ(back.values(), whole);
  });
}

TYPED_TEST_P(ProcessorContract, start_values_follow_from_the_global_index) {
  this->for_each_case([](sim::Processor& processor, const ProcessorCase& one) {
    const sim::StartValues start{Stream(5), TestFixture::live_of(one), true};
    sim::Array<float> masters(processor, one.packed_size() + 3);
    sim::Array<std::uint16_t> weights(processor, one.local_size());
    masters.fill(-7);
    weights.fill(0x4321);
    std::vector<float> right(masters.size(), -7);
    std::vector<std::uint16_t> right_weights(weights.size(), 0x4321);
    for_each_index(one.shape, one.packed(), one.in_place(),
                   [&](std::int64_t global, std::size_t a, std::size_t b) {
                     const bool live = global < start.live;
                     right[a] = live ? sim::initial_value(start.stream, global, true) : 0;
                     right_weights[b] = sim::to_bf16(right[a]);
                   });
    processor.run(element_maps(one.shape, one.packed(), one.packed()),
                  sim::StartMasters{start, masters.address()});
    processor.run(element_maps(one.shape, one.in_place(), one.in_place()),
                  sim::StartWeights{start, weights.address()});
    expect_same(masters.values(), right);
    expect_same(weights.values(), right_weights);
  });
}

TYPED_TEST_P(ProcessorContract, adam_updates_masters_moments_and_weights) {
  this->for_each_case([](sim::Processor& processor, const ProcessorCase& one) {
    const sim::Adam adam({.lr = 1e-2, .weight_decay = 0.1, .step = 3});
    const sim::Gradients gradients{Stream(9), 32768, TestFixture::live_of(one)};
    auto master = any_values<float>(one.packed_size(), "master");
    auto m = any_values<float>(one.packed_size(), "m");
    auto v = any_values<float>(one.packed_size(), "v");
    for (float& value : v) value = value < 0 ? -value : value;
    auto weight = any_values<std::uint16_t>(one.local_size(), "weight");
    const auto masters = TestFixture::array_of(processor, master);
    const auto first = TestFixture::array_of(processor, m);
    const auto second = TestFixture::array_of(processor, v);
    const auto weights = TestFixture::array_of(processor, weight);
    processor.run(element_maps(one.shape, one.packed(), one.in_place()),
                  sim::AdamUpdate{adam, gradients, 0.75F, masters.address(), first.address(),
                                  second.address(), weights.address()});
    for_each_index(one.shape, one.packed(), one.in_place(),
                   [&](std::int64_t global, std::size_t a, std::size_t b) {
                     if (global >= gradients.live) return;
                     const float g =
                         sim::gradient(gradients.stream, global, sim::from_bf16(weight[b]), 32768) *
                         0.75F;
                     adam.apply(master[a], m[a], v[a], g);
                     weight[b] = sim::to_bf16(master[a]);
                   });
    expect_same(masters.values(), master);
    expect_same(first.values(), m);
    expect_same(second.values(), v);
    expect_same(weights.values(), weight);
  });
}

TYPED_TEST_P(ProcessorContract, masters_are_made_of_weights) {
  this->for_each_case([](sim::Processor& processor, const ProcessorCase& one) {
    const auto stored = any_values<std::uint16_t>(one.packed_size(), "stored");
    const auto from = TestFixture::array_of(processor, stored);
    const sim::Array<float> to(processor, stored.size());
    const ElementMap all = line_map(static_cast<std::int64_t>(stored.size()));
    processor.run({&all, 1}, sim::Widen{from.address(), to.address()});
    std::vector<float> right;
    for (const auto bits : stored) right.push_back(sim::from_bf16(bits));
    expect_same(to.values(), right);
  });
}

TYPED_TEST_P(ProcessorContract, loss_and_gradients_are_summed_over_what_counts_here) {
  this->for_each_case([](sim::Processor& processor, const ProcessorCase& one) {
    const std::int64_t live = TestFixture::live_of(one);
    const sim::Copy copy{1, 3};
    const sim::Gradients gradients{Stream(9), 4, live};  // some gradients are zero
    const auto weight = any_values<std::uint16_t>(one.local_size(), "weight");
    const auto weights = TestFixture::array_of(processor, weight);
    const auto maps = element_maps(one.shape, one.in_place(), one.in_place());
    std::int64_t loss = 0;
    sim::GradientStatistics right;
    for_each_index(one.shape, one.in_place(), one.in_place(),
                   [&](std::int64_t global, std::size_t at, std::size_t) {
                     if (global >= live) return;
                     const float value = sim::from_bf16(weight[at]);
                     const float g = sim::gradient(gradients.stream, global, value, 4);
                     right.squares += sim::square_of(g);
                     right.infinite += std::isinf(g) ? 1 : 0;
                     right.nans += std::isnan(g) ? 1 : 0;
                     if ((global + 5) % 3 != 1) return;
                     loss += sim::loss_of(Stream(4), global, value);
                     right.counted += sim::square_of(g);
                     right.zeros += g == 0 ? 1 : 0;
                   });
    EXPECT_EQ(processor.sum(maps, sim::LossTerm{Stream(4), live, copy, 5, weights.address()})[0],
              loss);
    const auto sums = processor.sum(maps, sim::GradientTerm{gradients, copy, 5, weights.address()});
    EXPECT_EQ(sums[0], right.squares);
    EXPECT_EQ(sums[1], right.counted);
    EXPECT_EQ(sums[2], right.zeros);
    EXPECT_EQ(sums[3], right.infinite);
    EXPECT_EQ(sums[4], right.nans);
  });
}

TYPED_TEST_P(ProcessorContract, the_first_stale_weight_is_found_wherever_it_is) {
  this->for_each_case([](sim::Processor& processor, const ProcessorCase& one) {
    const auto master = any_values<float>(one.packed_size(), "master");
    std::vector<std::uint16_t> stored;
    for (const float value : master) stored.push_back(sim::to_bf16(value));
    const auto masters = TestFixture::array_of(processor, master);
    auto weights = TestFixture::array_of(processor, stored);
    const auto maps = element_maps(one.shape, one.packed(), one.packed());
    const sim::StaleWeight stale{masters.address(), weights.address()};
    EXPECT_EQ(processor.first(maps, stale), std::nullopt);
    std::vector<std::size_t> order;  // offsets of the elements in the buffer, piece by piece
    for_each_index(one.shape, one.packed(), one.packed(),
                   [&](std::int64_t, std::size_t at, std::size_t) { order.push_back(at); });
    for (std::size_t i = 0; i < order.size(); i += order.size() / 5 + 1) {
      auto wrong = stored;
      for (std::size_t j = i; j < order.size(); j += 3) wrong[order[j]] ^= 1U;
      weights.assign(wrong);
      EXPECT_EQ(processor.first(maps, stale), static_cast<std::int64_t>(i));
    }
  });
}

TYPED_TEST_P(ProcessorContract, a_leaf_has_the_digest_of_its_elements_whatever_their_width) {
  this->for_each_case([](sim::Processor& processor, const ProcessorCase& one) {
    for (const DType dtype :
         {DType::kBool, DType::kBFloat16, DType::kFloat32, DType::kInt64, DType::kComplex128}) {
      const std::size_t width = size_of(dtype);
      auto local = any_values<std::uint16_t>((one.local_size() * width + 1) / 2, name_of(dtype));
      const auto* bytes = reinterpret_cast<const std::byte*>(local.data());
      const auto array = TestFixture::array_of(processor, local);
      const TensorLeaf leaf{.key = "w",
                            .dtype = dtype,
                            .shape = one.shape,
                            .pieces = one.in_place(),
                            .data = array.address_of(0)};
      std::uint64_t right = 0;
      for_each_index(one.shape, leaf.pieces, leaf.pieces,
                     [&](std::int64_t global, std::size_t at, std::size_t) {
                       WideWord bits;
                       std::memcpy(&bits, bytes + at * width, width);
                       right += width > 8 ? element_digest(77, global, bits)
                                          : element_digest(77, global, bits.low);
                     });
      EXPECT_EQ(sim::leaf_digest(processor, leaf, 77), right) << dtype;
    }
  });
}

REGISTER_TYPED_TEST_SUITE_P(ProcessorContract, arrays_take_fill_clone_and_give_back_their_content,
                            boxes_are_copied_to_and_from_a_packed_buffer,
                            start_values_follow_from_the_global_index,
                            adam_updates_masters_moments_and_weights, masters_are_made_of_weights,
                            loss_and_gradients_are_summed_over_what_counts_here,
                            the_first_stale_weight_is_found_wherever_it_is,
                            a_leaf_has_the_digest_of_its_elements_whatever_their_width);

}  // namespace reprise::contracts
