// Tests which wrong checksums are kept and which are only counted.

#include "core/checkpoint/checksum_tally.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/contracts/error_of.hpp"

namespace reprise {
namespace {

using contracts::code_of;
using ::testing::HasSubstr;

void add_wrong(ChecksumTally& tally, const std::string& file, std::size_t records) {
  for (std::size_t i = 0; i < records; ++i) {
    const Record record{.name = "data/" + std::to_string(i), .size = 4, .crc = 7};
    tally.add(file, record, false, [&] {
      return ErrorPlace{.key = file + std::to_string(i), .file = file, .offset = i};
    });
  }
}

TEST(ChecksumTally, each_wrong_record_is_a_finding_with_its_place) {
  ChecksumTally tally;
  add_wrong(tally, "f", 3);
  const Findings findings = tally.findings();
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[2].code, Code::kChecksum);
  EXPECT_EQ(findings[2].key, "f2");
  EXPECT_EQ(findings[2].file, "f");
  EXPECT_EQ(findings[2].offset, 2U);
  EXPECT_THAT(findings[2].message, HasSubstr("data/2"));
}

TEST(ChecksumTally, of_a_file_64_wrong_records_are_told_and_the_others_counted) {
  ChecksumTally tally;
  add_wrong(tally, "f", 70);
  const Findings findings = tally.findings();
  ASSERT_EQ(findings.size(), 65U);
  EXPECT_EQ(findings[63].key, "f63");
  EXPECT_EQ(findings[64].message, "6 more records are wrong");
  EXPECT_EQ(tally.mismatches(), 70U);
}

TEST(ChecksumTally, of_each_file_the_first_wrong_record_is_kept_however_many_there_are) {
  ChecksumTally tally;
  for (int file = 0; file < 20; ++file) add_wrong(tally, "f" + std::to_string(file), 64);
  const auto in_last = [](const std::string& file) { return file == "f19"; };
  const auto error = contracts::error_of([&] { tally.require_matches(in_last); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->place().key, "f190");
  EXPECT_EQ(tally.findings().back().message, "1,216 more records are wrong");
}

TEST(ChecksumTally, records_that_match_are_no_damage) {
  ChecksumTally tally;
  tally.add("f", {.name = "data/0", .size = 4, .crc = 7}, true, [] { return ErrorPlace{}; });
  tally.add_matching("f", 2);
  EXPECT_EQ(tally.records(), 3U);
  EXPECT_EQ(tally.mismatches(), 0U);
  EXPECT_TRUE(tally.findings().empty());
  EXPECT_EQ(code_of([&] { tally.require_no_damage(); }), std::nullopt);
}

TEST(ChecksumTally, one_file_without_checksums_excuses_no_other) {
  ChecksumTally tally;
  for (const char* name : {"data/0", "data/1"}) {
    tally.add("off", {.name = name, .size = 4, .crc = 0}, false, [] { return ErrorPlace{}; });
  }
  EXPECT_EQ(code_of([&] { tally.require_no_damage(); }), std::nullopt);
  EXPECT_EQ(tally.findings().back().severity, Severity::kNote);
  add_wrong(tally, "wrong", 1);
  const auto error = contracts::error_of([&] { tally.require_no_damage(); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->place().file, "wrong");
}

}  // namespace
}  // namespace reprise
