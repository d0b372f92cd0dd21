#include "core/base/bytes.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "core/base/random.hpp"

namespace reprise {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

TEST(ByteRange, fits_if_it_ends_within_the_file_even_where_the_sum_overflows) {
  struct Row {
    ByteRange range;
    std::uint64_t file_size;
    bool fits;
  };
  const Row rows[] = {
      {{0, 0}, 0, true},         {{0, 1}, 0, false},          {{1, 0}, 0, false},
      {{0, 10}, 10, true},       {{10, 0}, 10, true},         {{11, 0}, 10, false},
      {{9, 1}, 10, true},        {{9, 2}, 10, false},         {{1, kMost}, 10, false},
      {{kMost, 1}, 10, false},   {{kMost, kMost}, 10, false}, {{8, kMost - 6}, 10, false},
      {{0, kMost}, kMost, true}, {{1, kMost}, kMost, false},  {{kMost, 0}, kMost, true},
  };
  for (const auto& [range, file_size, fits] : rows) {
    EXPECT_EQ(range.fits(file_size), fits)
        << range.offset << " + " << range.size << " in " << file_size;
  }
}

RC_GTEST_PROP(ByteRange, fits_is_what_wider_numbers_say,
              (std::uint64_t offset, std::uint64_t size, std::uint64_t file_size)) {
  const Wide end = static_cast<Wide>(offset) + static_cast<Wide>(size);
  RC_ASSERT((ByteRange{offset, size}.fits(file_size)) == (end <= static_cast<Wide>(file_size)));
}

TEST(Bytes, numbers_are_little_endian) {
  Bytes out;
  append_le(out, std::uint32_t{0x01020304});
  append_le(out, std::uint16_t{0xa0b0});
  const Bytes expected = {std::byte{4}, std::byte{3},    std::byte{2},
                          std::byte{1}, std::byte{0xb0}, std::byte{0xa0}};
  EXPECT_EQ(out, expected);
  EXPECT_EQ(load_le<std::uint32_t>(out), 0x01020304U);
  EXPECT_EQ(load_le<std::uint16_t>(ByteSpan(out).subspan(4)), 0xa0b0U);
}

TEST(Bytes, text_and_bytes_match_even_with_zeros_and_high_bytes) {
  const std::string text("a\0\xff z", 5);
  const Bytes bytes = to_bytes(text);
  ASSERT_EQ(bytes.size(), 5U);
  EXPECT_EQ(bytes[2], std::byte{0xff});
  EXPECT_EQ(as_text(bytes), text);
  Bytes twice = bytes;
  append(twice, as_bytes(text));
  EXPECT_EQ(as_text(twice), text + text);
}

}  // namespace
}  // namespace reprise
