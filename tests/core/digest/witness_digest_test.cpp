// Tests the arithmetic of the digests by which programs tell what they hold.
#include "core/digest/witness_digest.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "core/base/hash.hpp"

namespace reprise {
namespace {

template <class T, std::size_t N>
std::string digest_text(const std::string& key, DType dtype, const Dims& shape,
                        const std::array<T, N>& elements) {
  const auto bytes =
      as_bytes(std::string_view(reinterpret_cast<const char*>(elements.data()), N * sizeof(T)));
  return hex(
      witness_digest(witness_key(key, name_of(dtype)), dtype, shape, Box::whole(shape), bytes));
}

/// docs/trainers.md and tests/trainers/test_witness.py list the same test vectors.
TEST(WitnessDigest, GivesTheKnownNumbers) {
  EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafULL);
  EXPECT_EQ(digest_text("model.w", DType::kFloat32, {2, 2}, std::array{1.F, 2.F, 3.F, 4.F}),
            "a2f7d39de7b68a8a");
  EXPECT_EQ(digest_text("n", DType::kInt64, {}, std::array{std::int64_t{7}}), "f64d5212941744ae");
  EXPECT_EQ(digest_text("flag", DType::kBool, {3}, std::array{true, false, true}),
            "d187eb957a8d7fcf");
  EXPECT_EQ(digest_text("half", DType::kFloat16, {2},
                        std::array{std::uint16_t{0x3c00}, std::uint16_t{0xc000}}),
            "ef76c4af55e551b3");
}

TEST(WitnessDigest, AddsUpOverDisjointBoxes) {
  const std::array<float, 6> whole = {1, 2, 3, 4, 5, 6};
  const auto bytes = [](const auto& values) {
    return ByteSpan(reinterpret_cast<const std::byte*>(values.data()), values.size() * 4);
  };
  const std::uint64_t key = witness_key("k", "float32");
  const auto part = [&](const Box& box, const auto& values) {
    return witness_digest(key, DType::kFloat32, {2, 3}, box, bytes(values));
  };
  EXPECT_EQ(part({{0, 0}, {2, 1}}, std::array{1.F, 4.F}) +
                part({{0, 1}, {2, 2}}, std::array{2.F, 3.F, 5.F, 6.F}),
            part({{0, 0}, {2, 3}}, whole));
  EXPECT_EQ(part({{1, 0}, {0, 3}}, std::array<float, 0>{}), 0U);
}

}  // namespace
}  // namespace reprise
