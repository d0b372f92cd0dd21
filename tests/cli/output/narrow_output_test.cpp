// Tests tables and progress on a terminal of 80 columns.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "cli/output/progress_line.hpp"
#include "cli/output/table.hpp"

namespace reprise::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string printed(const Table& table, std::size_t width) {
  std::ostringstream out;
  std::ostringstream err;
  table.print({.out = out, .err = err, .out_width = width});
  return out.str();
}

Table table_of(const std::string& key, const std::string& words) {
  Table table({{"tensor"}, {"verdict"}, {"A | B"}});
  table.add({key, "different", words});
  return table;
}

TEST(NarrowOutput, a_long_key_gets_a_line_of_its_own) {
  const std::string key(60, 'k');
  EXPECT_EQ(printed(table_of(key, "float32 | bfloat16 [8, 8]"), 80),
            "tensor" + std::string(38, ' ') + "verdict    A | B\n" + key + "\n" +
                std::string(44, ' ') + "different  float32 | bfloat16 [8, 8]\n");
}

TEST(NarrowOutput, a_row_that_does_not_fit_becomes_a_line_for_each_fact) {
  const std::string key(100, 'k');
  const std::string words =
      "1 of 24 elements, max_delta 9.53674e-07, first at [2, 3]: 8.125 (0x41020000) | "
      "8.1250009536743164 (0x41020001)";
  const std::string text = printed(table_of(key, words), 80);
  EXPECT_EQ(text, key +
                      "\n"
                      "  verdict  different\n"
                      "  A | B    1 of 24 elements, max_delta 9.53674e-07, first at [2, 3]: 8.125\n"
                      "           (0x41020000) | 8.1250009536743164 (0x41020001)\n");
  EXPECT_THAT(printed(table_of(key, words), 0), HasSubstr(key + "  different  " + words));
}

TEST(NarrowOutput, a_word_longer_than_the_line_is_not_broken) {
  const std::string digest(64, 'd');
  EXPECT_THAT(printed(table_of("w", "sha256 " + digest), 40),
              HasSubstr("  A | B    sha256\n           " + digest + "\n"));
}

TEST(NarrowOutput, a_very_long_key_makes_no_other_row_wide_in_a_pipe) {
  const std::string key(300, 'k');
  Table table({{"tensor"}, {"verdict"}});
  table.add({"short", "same"});
  table.add({key, "different"});
  EXPECT_EQ(printed(table, 0),
            "tensor  verdict\n"
            "short   same\n" +
                key + "\n        different\n");
}

TEST(NarrowOutput, characters_are_counted_and_not_bytes) {
  Table table({{"tensor"}, {"verdict"}});
  table.add({"\xc3\xa4\xc3\xb6\xc3\xbc\xe2\x86\x92\xe2\x86\x92\xe2\x86\x92", "same"});
  table.add({"seven77", "same"});
  EXPECT_EQ(printed(table, 80),
            "tensor   verdict\n"
            "\xc3\xa4\xc3\xb6\xc3\xbc\xe2\x86\x92\xe2\x86\x92\xe2\x86\x92   same\n"
            "seven77  same\n");
  EXPECT_EQ(shorten_middle("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 5),
            "...\xc3\xa4\xc3\xa4");
}

TEST(NarrowOutput, progress_has_rate_and_time_left_and_fits) {
  struct Row {
    ProgressState state;
    ProgressUnit unit;
    const char* text;
  };
  constexpr std::uint64_t kSecond = 1'000'000'000;
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
  const Row rows[] = {
      {{"w", 0, 100, kSecond}, ProgressUnit::kBytes, "verify   0 %  w"},
      {{"w", 10 * kMiB, 100 * kMiB, 2 * kSecond},
       ProgressUnit::kBytes,
       "verify  10 %  5.00 MiB/s  0:18 left  w"},
      {{"w", 1, 3601, kSecond}, ProgressUnit::kItems, "verify   0 %  1:00:00 left  w"},
      {{"w", 5, 65, 5 * kSecond}, ProgressUnit::kItems, "verify   8 %  1:00 left  w"},
      {{"w", 7, 7, kSecond}, ProgressUnit::kItems, "verify 100 %  w"},
      {{"w", 0, 0, kSecond}, ProgressUnit::kItems, "verify 100 %  w"},
  };
  for (const Row& row : rows) EXPECT_EQ(progress_text("verify", row.state, row.unit), row.text);
  const std::string name = "begin" + std::string(200, 'x') + "end";
  const auto text =
      progress_text("verify", {name, 10 * kMiB, 100 * kMiB, kSecond}, ProgressUnit::kBytes);
  EXPECT_EQ(text.size(), 79U);
  EXPECT_THAT(text, AllOf(HasSubstr("  begin"), HasSubstr("..."), testing::EndsWith("end")));
  const std::string verb(76, 'v');
  EXPECT_THAT(progress_text(verb, {"name", 0, 1, 0}, ProgressUnit::kBytes), Not(HasSubstr("name")));
}

/// A clock that a test sets.
struct SetClock final : Clock {
  std::uint64_t now = 0;
  std::uint64_t now_ns() override { return now; }
};

TEST(NarrowOutput, progress_waits_a_second_and_is_cleared) {
  std::ostringstream out;
  std::ostringstream err;
  std::ostringstream terminal;
  const Console console{.out = out, .err = err, .err_is_terminal = true, .terminal = &terminal};
  SetClock clock;
  {
    ProgressLine line(console, clock, "verify", ProgressLine::Shown::kYes, ProgressUnit::kBytes);
    clock.now = 999'999'999;
    line.advance("w", 50, 100);
    EXPECT_EQ(terminal.str(), "");
    clock.now = 2'000'000'000;
    line.advance("w", 50, 100);
    EXPECT_EQ(terminal.str(), "\r\x1b[Kverify  50 %  25 B/s  0:02 left  w");
    line.advance("w", 51, 100);
    EXPECT_EQ(terminal.str(), "\r\x1b[Kverify  50 %  25 B/s  0:02 left  w") << "too soon";
  }
  EXPECT_THAT(terminal.str(), testing::EndsWith("\r\x1b[K"));
  EXPECT_EQ(out.str() + err.str(), "");
}

TEST(NarrowOutput, progress_that_no_terminal_shows_is_a_line_a_minute) {
  std::ostringstream err;
  const Console console{.out = err, .err = err, .terminal = &err};
  SetClock clock;
  for (const auto shown : {ProgressLine::Shown::kYes, ProgressLine::Shown::kNever}) {
    clock.now = 0;
    ProgressLine line(console, clock, "run", shown);
    for (int second = 0; second <= 130; ++second) {
      clock.now = static_cast<std::uint64_t>(second) * 1'000'000'000;
      line.show(std::to_string(second));
    }
  }
  EXPECT_EQ(err.str(), "run 60\nrun 120\n");
}

}  // namespace
}  // namespace reprise::cli
