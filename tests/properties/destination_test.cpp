#include "properties/destination.hpp"
#include "properties/finding_code.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace reprise {
namespace {

/// Memory of two tensors with 8 elements of 4 bytes each.
struct Memory {
  Bytes first = Bytes(32, std::byte{0x11});
  Bytes second = Bytes(32, std::byte{0x22});

  StateDict state() {
    StateDict state;
    for (auto* bytes : {&first, &second}) {
      TensorLeaf leaf{.key = bytes == &first ? "first" : "second", .shape = {8}};
      leaf.pieces = {contiguous_piece({{0}, {8}})};
      leaf.data = bytes->data();
      state.tensors.push_back(std::move(leaf));
    }
    return state;
  }
};

TEST(Destination, old_bits_and_poison_are_allowed_after_a_refusal_and_counted) {
  Memory memory;
  const Destination before(memory.state());
  std::fill(memory.second.begin(), memory.second.end(), kLoadPoison);
  const RefusalEvidence evidence = before.refused(GlobalRank{1}, memory.state());
  EXPECT_TRUE(evidence.findings.empty());
  EXPECT_EQ(evidence.tensors, 2U);
  EXPECT_EQ(evidence.elements, 16U);
}

TEST(Destination, half_of_what_was_read_is_neither) {
  Memory memory;
  const Destination before(memory.state());
  std::fill(memory.second.begin(), memory.second.begin() + 16, kLoadPoison);
  memory.first.back() = std::byte{0};
  const RefusalEvidence evidence = before.refused(GlobalRank{1}, memory.state());
  ASSERT_EQ(evidence.findings.size(), 2U);
  for (const auto& finding : evidence.findings) {
    EXPECT_EQ(finding.code, judged::kBitMismatch);
    EXPECT_EQ(finding.rank, GlobalRank{1});
  }
  EXPECT_EQ(evidence.findings[0].key, "first");
  EXPECT_EQ(evidence.findings[1].key, "second");
}

}  // namespace
}  // namespace reprise
