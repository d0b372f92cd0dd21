#include "core/base/hash.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <vector>

namespace reprise {
namespace {

TEST(Hash, is_the_published_xxh3_and_splitmix64) {
  EXPECT_EQ(hash_of(std::string_view()), 0x2d06800538d394c2ULL);
  EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafULL);  // first number of SplitMix64 with seed 0
  EXPECT_EQ(mix64(0x9e3779b97f4a7c15ULL), 0x6e789e6aa1b965f4ULL);  // the second number
}

TEST(Hash, mixing_two_depends_on_their_order) {
  EXPECT_NE(mix64(1, 2), mix64(2, 1));
  EXPECT_NE(mix64(0, 0), mix64(0));
}

/// All ways to split "aab" and similar texts into fields, including empty fields, give different
/// digests.
TEST(Hasher, fields_delimit_themselves) {
  const std::vector<std::vector<std::string>> different = {
      {},
      {""},
      {"", ""},
      {"aab"},
      {"a", "ab"},
      {"aa", "b"},
      {"a", "a", "b"},
      {"aab", ""},
      {"", "aab"},
      {"", "aab", ""},
      {"a", "", "ab"},
  };
  std::set<std::uint64_t> digests;
  for (const auto& fields : different) {
    Hasher hasher;
    for (const auto& field : fields) hasher.text(field);
    EXPECT_TRUE(digests.insert(hasher.digest()).second) << testing::PrintToString(fields);
  }
}

RC_GTEST_PROP(Hasher, equal_fields_are_the_only_way_to_equal_digests,
              (const std::vector<std::string>& left, const std::vector<std::string>& right)) {
  const auto digest = [](const std::vector<std::string>& fields) {
    Hasher hasher;
    for (const auto& field : fields) hasher.text(field);
    return hasher.digest();
  };
  RC_ASSERT(digest(left) == digest(std::vector<std::string>(left)));
  RC_ASSERT((digest(left) == digest(right)) == (left == right));
}

TEST(Hasher, digest_can_be_asked_on_the_way_and_changes_nothing) {
  Hasher asked;
  asked.number(1);
  const auto early = asked.digest();
  EXPECT_EQ(asked.digest(), early);
  asked.bytes(as_bytes("x"));
  Hasher straight;
  straight.number(1).text("x");
  EXPECT_EQ(asked.digest(), straight.digest());
  EXPECT_NE(asked.digest(), early);
}

TEST(Hash, hex_has_sixteen_digits) {
  EXPECT_EQ(hex(0), "0000000000000000");
  EXPECT_EQ(hex(0x0123456789abcdefULL), "0123456789abcdef");
  EXPECT_EQ(hex(~std::uint64_t{0}), "ffffffffffffffff");
}

}  // namespace
}  // namespace reprise
