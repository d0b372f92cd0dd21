#include "core/geometry/compare.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <new>

#include "core/geometry/difference.hpp"
#include "tests/contracts/compare_cases.hpp"

namespace reprise {
namespace {

using contracts::CompareCase;
using contracts::compared_by_definition;
using contracts::expect_same_comparison;

Comparison compare(DType dtype, const Bytes& left, const Bytes& right) {
  return compare_elements(dtype, left.data(), right.data(),
                          static_cast<std::int64_t>(left.size() / size_of(dtype)));
}

TEST(Compare, random_bits_of_every_type_are_judged_as_defined) {
  for (const DType dtype : all_dtypes()) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      SCOPED_TRACE(std::string(name_of(dtype)) + ", seed " + std::to_string(seed));
      Stream random(seed);
      // Compares small and large sizes with few and many differences. Some elements are infinities
      // and NaNs.
      const std::size_t elements = seed % 4 == 0 ? 9000 : random.below(40);
      Bytes left(elements * size_of(dtype));
      for (auto& byte : left) byte = static_cast<std::byte>(random.next());
      Bytes right = left;
      const std::uint64_t rarity = seed % 3 == 0 ? 1 : 2000;
      for (auto& byte : right) {
        if (random.below(rarity) == 0) byte ^= static_cast<std::byte>(random.next());
      }
      expect_same_comparison(compare(dtype, left, right),
                             compared_by_definition(dtype, left, right));
    }
  }
}

TEST(Compare, all_values_of_one_and_two_bytes_beside_a_few_others) {
  for (const DType dtype : all_dtypes()) {
    if (size_of(dtype) > 2) continue;
    const std::size_t values = std::size_t{1} << (8 * size_of(dtype));
    for (const std::size_t other : {0UL, 1UL, 0x42UL, 0x80UL, 0x7c00UL, 0x7e01UL, 0xfc00UL}) {
      if (other >= values) continue;
      for (std::size_t bits = 0; bits < values; ++bits) {
        const auto element = [&](std::size_t value) {
          Bytes bytes;
          for (std::size_t b = 0; b < size_of(dtype); ++b) {
            bytes.push_back(static_cast<std::byte>(value >> (8 * b)));
          }
          return bytes;
        };
        expect_same_comparison(compare(dtype, element(bits), element(other)),
                               compared_by_definition(dtype, element(bits), element(other)));
        if (testing::Test::HasFailure()) FAIL() << dtype << ' ' << bits << ' ' << other;
      }
    }
  }
}

TEST(Compare, one_flipped_bit_is_found_wherever_it_is) {
  for (const DType dtype : {DType::kUInt8, DType::kBFloat16, DType::kFloat32, DType::kComplex128}) {
    const Bytes left(4100 * size_of(dtype), std::byte{0x3f});
    Bytes right = left;
    for (std::size_t at = 0; at < left.size(); at += 251) {
      right[at] ^= std::byte{0x01};
      const Comparison found = compare(dtype, left, right);
      EXPECT_EQ(found.bit_mismatches, 1U);
      EXPECT_EQ(found.first, static_cast<std::int64_t>(at / size_of(dtype)));
      right[at] = left[at];
    }
    EXPECT_TRUE(compare(dtype, left, right).same());
  }
}

TEST(Compare, values_in_a_float4_byte_give_max_delta_and_are_printed) {
  const Comparison found = compare(DType::kFloat4E2M1FNx2, {std::byte{0x21}, std::byte{0x10}},
                                   {std::byte{0xf1}, std::byte{0x10}});
  EXPECT_EQ(found.bit_mismatches, 1U);
  EXPECT_EQ(found.max_delta, 7);  // the upper halves are 1 and -6, the lower both 0.5
  const auto element = std::byte{0xf1};
  EXPECT_EQ(print_element(DType::kFloat4E2M1FNx2, &element), "[0.5, -6] (0xf1)");
}

TEST(Compare, integers_beyond_double_precision_are_1_apart_and_printed_so) {
  for (const DType dtype : {DType::kInt64, DType::kUInt64}) {
    Bytes left(8, std::byte{0});
    left[7] = std::byte{0x40};  // makes the value 2^62
    Bytes right = left;
    right[0] = std::byte{1};
    EXPECT_EQ(compare(dtype, left, right).max_delta, 1) << dtype;
    EXPECT_EQ(print_element(dtype, right.data()), "4611686018427387905 (0x4000000000000001)");
  }
}

TEST(Compare, a_complex_number_is_printed_with_the_sign_of_each_part) {
  const auto printed = [](float real, float imaginary) {
    const float parts[] = {real, imaginary};
    const std::string text =
        print_element(DType::kComplex64, reinterpret_cast<const std::byte*>(parts));
    return text.substr(0, text.find(' '));
  };
  EXPECT_EQ(printed(1.5F, 2), "1.5+2j");
  EXPECT_EQ(printed(-1.5F, -2), "-1.5-2j");
  EXPECT_EQ(printed(3, 0), "3");
}

/// A buffer of exactly the content's length that begins `lead` bytes after a 16-byte boundary.
/// AddressSanitizer detects reads beyond its end.
class Side {
 public:
  Side(const Bytes& content, std::size_t lead)
      : memory_(new (std::align_val_t{16}) std::byte[lead + content.size()]), lead_(lead) {
    std::copy(content.begin(), content.end(), memory_.get() + lead);
  }
  const std::byte* data() const { return memory_.get() + lead_; }

 private:
  struct Free {
    void operator()(std::byte* freed) const { ::operator delete[](freed, std::align_val_t{16}); }
  };
  std::unique_ptr<std::byte[], Free> memory_;
  std::size_t lead_;
};

/// Compares by running the kernel's body once for each of `threads` threads.
Comparison compare_in_blocks(const CompareCase& one, std::int64_t threads) {
  const Side left(one.left, one.left_lead);
  const Side right(one.right, one.right_lead);
  DifferenceSum all;
  with_value_of(one.dtype, [&](const auto& value, auto parts) {
    const CompareBlocks<parts(), std::decay_t<decltype(value)>> body{
        left.data(), right.data(), static_cast<std::int64_t>(one.left.size()), value};
    for (std::int64_t thread = threads; thread-- > 0;) all.add(body.sum_of(thread, threads));
  });
  return comparison_of(all, one.elements());
}

TEST(Compare, host_and_body_of_the_kernel_judge_the_same_cases_as_defined) {
  for (const DType dtype : all_dtypes()) {
    const auto judge = [&](const CompareCase& one) {
      SCOPED_TRACE(std::string(name_of(dtype)) + ": " + one.name);
      const Comparison right = compared_by_definition(dtype, one.left, one.right);
      expect_same_comparison(compare(dtype, one.left, one.right), right);
      for (const std::int64_t threads : {1, 3}) {
        expect_same_comparison(compare_in_blocks(one, threads), right);
      }
    };
    contracts::for_each_compare_case(dtype, 40'000, judge);
    contracts::for_each_special_pair(dtype, judge);
  }
}

}  // namespace
}  // namespace reprise
