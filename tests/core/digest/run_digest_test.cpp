// Tests that each way to digest a run gives the sum of what its elements contribute.
#include "core/digest/run_digest.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace reprise {
namespace {

constexpr std::size_t kElements = 67;

/// Calls `expect` with runs of each length that begin anywhere, and with what their digest must be.
template <class Word, class Expect>
void for_each_run(const Expect& expect) {
  std::array<std::byte, kElements * sizeof(Word)> bytes;
  std::uint64_t state = 1;
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(state = mix64(state));
  for (const std::int64_t index : {std::int64_t{0}, std::int64_t{5}, std::int64_t{1} << 40U}) {
    for (std::int64_t length = 0; length + 1 < static_cast<std::int64_t>(kElements); ++length) {
      const std::byte* at = bytes.data() + 1;  // elements of a file need not be aligned
      const Run run{0xfedcba9876543210ULL, index, at, length};
      std::uint64_t sum = 0;
      for (std::int64_t i = 0; i < length; ++i, at += sizeof(Word)) {
        Word word;
        std::memcpy(&word, at, sizeof word);
        sum += element_digest(run.key, index + i, word);
      }
      expect(run, sum);
    }
  }
}

template <class Word>
class RunDigestOf : public ::testing::Test {};

using Words = ::testing::Types<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, WideWord>;
TYPED_TEST_SUITE(RunDigestOf, Words);

TYPED_TEST(RunDigestOf, AnyLengthIsTheSumOfItsElements) {
  for_each_run<TypeParam>([](const Run& run, std::uint64_t sum) {
    EXPECT_EQ(run_digest_plain<TypeParam>(run), sum) << run.length;
    EXPECT_EQ(run_digest<TypeParam>(run), sum) << run.length;
  });
}

#if defined(__x86_64__)
TYPED_TEST(RunDigestOf, VectorsGiveTheSameSum) {
  if constexpr (std::is_integral_v<TypeParam>) {
    for_each_run<TypeParam>([](const Run& run, std::uint64_t sum) {
      if (__builtin_cpu_supports("avx2")) {
        EXPECT_EQ(run_digest_avx2<TypeParam>(run), sum) << run.length;
      }
      if (__builtin_cpu_supports("avx512dq")) {
        EXPECT_EQ(run_digest_avx512<TypeParam>(run), sum) << run.length;
      }
    });
  }
}
#endif

}  // namespace
}  // namespace reprise
