// Tests that texts of a pickle are found again, also texts that meet in the table.

#include "core/format/pickle/text_memo.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/hash.hpp"

namespace reprise::test::text_memo_test {
namespace {

using pickle::TextMemo;

/// Returns texts whose hashes all end in the same bits, as a hostile writer can make them.
std::vector<std::string> texts_that_meet(std::size_t count) {
  constexpr std::uint64_t kSameBits = 0xfff;
  std::vector<std::string> texts;
  for (std::size_t i = 0; texts.size() < count; ++i) {
    std::string text = "key " + std::to_string(i);
    if ((hash_of(text) & kSameBits) == 7) texts.push_back(std::move(text));
  }
  return texts;
}

void expect_found(const std::vector<std::string>& texts) {
  TextMemo memo;
  Bytes out = to_bytes("before");
  for (std::uint32_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(memo.find(texts[i], out), std::nullopt);
    append(out, as_bytes(texts[i]));
    memo.add(texts[i], i, out);
    append(out, as_bytes("between"));
  }
  for (std::uint32_t i = 0; i < texts.size(); ++i) EXPECT_EQ(memo.find(texts[i], out), i);
  EXPECT_EQ(memo.find("another", out), std::nullopt);
}

TEST(TextMemo, each_text_has_the_index_that_it_was_added_with) {
  std::vector<std::string> texts = {""};
  for (int i = 0; i < 5000; ++i) texts.push_back(std::to_string(i));
  expect_found(texts);
}

TEST(TextMemo, texts_that_meet_in_the_table_are_told_apart) { expect_found(texts_that_meet(200)); }

}  // namespace
}  // namespace reprise::test::text_memo_test
