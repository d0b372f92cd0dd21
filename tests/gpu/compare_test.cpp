// Tests that a GPU compares elements exactly as the contract of comparisons requires.
#include "core/adapters/cuda/cuda_compare.hpp"
#include "tests/contracts/compare_cases.hpp"
#include "tests/gpu/gpu.hpp"

namespace reprise {
namespace {

using contracts::CompareCase;
using contracts::compared_by_definition;
using contracts::expect_same_comparison;
using testing_gpu::few;
using testing_gpu::OnDevice;

class CudaCompare : public testing_gpu::OnGpu {};

TEST_F(CudaCompare, judges_every_case_of_every_type_as_defined) {
  for (const DType dtype : all_dtypes()) {
    const auto judge = [&](const CompareCase& one) {
      SCOPED_TRACE(std::string(name_of(dtype)) + ": " + one.name);
      const OnDevice left(device(), one.left, one.left_lead);
      const OnDevice right(device(), one.right, one.right_lead);
      expect_same_comparison(
          compare_on_device(device(), dtype, left.data(), right.data(), one.elements()),
          compared_by_definition(dtype, one.left, one.right));
    };
    contracts::for_each_compare_case(dtype, few() ? 1U << 14U : 1U << 20U, judge);
  }
}

// Compares one pair at a time. There are tens of thousands of pairs, so all pairs of a type are
// uploaded together, in only two transfers.
TEST_F(CudaCompare, judges_every_special_element_beside_each_as_defined) {
  for (const DType dtype : all_dtypes()) {
    std::vector<CompareCase> pairs;
    contracts::for_each_special_pair(dtype, [&](const CompareCase& one) { pairs.push_back(one); });
    Bytes lefts;
    Bytes rights;
    for (const auto& one : pairs) {
      append(lefts, one.left);
      append(rights, one.right);
    }
    const OnDevice left(device(), lefts);
    const OnDevice right(device(), rights);
    const std::size_t every = few() ? 29 : 1;
    for (std::size_t i = 0; i < pairs.size(); i += every) {
      SCOPED_TRACE(std::string(name_of(dtype)) + ": " + pairs[i].name);
      const std::size_t at = i * size_of(dtype);
      expect_same_comparison(
          compare_on_device(device(), dtype, left.data() + at, right.data() + at, 1),
          compared_by_definition(dtype, pairs[i].left, pairs[i].right));
    }
  }
}

TEST_F(CudaCompare, one_difference_is_found_wherever_it_is_among_many_blocks) {
  const std::size_t bytes = (std::size_t{few() ? 4U : 64U} << 20U) + 16 + 2;
  const Bytes content(bytes, std::byte{0x3c});
  const OnDevice left(device(), content);
  const OnDevice right(device(), content);
  const auto elements = static_cast<std::int64_t>(bytes / 2);
  for (std::size_t at = 0; at < bytes; at += (bytes - 1) / 7) {
    fill_bytes(compute(), right.data() + at, std::byte{0x3d}, 1);
    const Comparison found =
        compare_on_device(device(), DType::kBFloat16, left.data(), right.data(), elements);
    EXPECT_EQ(found.bit_mismatches, 1U);
    EXPECT_EQ(found.first, static_cast<std::int64_t>(at / 2));
    fill_bytes(compute(), right.data() + at, std::byte{0x3c}, 1);
  }
  EXPECT_TRUE(
      compare_on_device(device(), DType::kBFloat16, left.data(), right.data(), elements).same());
}

}  // namespace
}  // namespace reprise
