// Tests which wrong checksums are kept and which are only counted.

#include "core/checkpoint/checksum_tally.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "tests/contracts/error_of.hpp"

namespace reprise {
namespace {

using contracts::code_of;
using ::testing::HasSubstr;
using ::testing::StartsWith;

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

TEST(ChecksumTally, keeps_the_first_wrong_record_of_every_file) {
  ChecksumTally tally;
  for (int file = 0; file < 20; ++file) add_wrong(tally, "f" + std::to_string(file), 64);
  const auto in_last = [](const std::string& file) { return file == "f19"; };
  const auto error = contracts::error_of([&] { tally.require_matches(in_last); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->place().key, "f190");
  EXPECT_EQ(tally.findings().back().message, "1,216 more records are wrong");
}

TEST(ChecksumTally, keeps_at_most_1024_wrong_records_or_one_of_each_file) {
  ChecksumTally tally;
  for (int file = 0; file < 16; ++file) {  // without checksums, so kept but not told
    for (int i = 0; i < 63; ++i) {
      tally.add(std::to_string(file), {.name = "data/0", .size = 4, .crc = 0}, false,
                [] { return ErrorPlace{}; });
    }
  }
  add_wrong(tally, "at the limit", 200);
  add_wrong(tally, "beyond it", 3);
  const Findings findings = tally.findings();
  ASSERT_EQ(findings.size(), 15U + 1 + 2);
  EXPECT_EQ(findings[14].key, "at the limit14");
  EXPECT_EQ(findings[15].key, "beyond it0");
  EXPECT_EQ(findings[16].message, "187 more records are wrong");
  EXPECT_EQ(tally.mismatches(), 16U * 63 + 203);
}

TEST(ChecksumTally, the_first_records_are_told_in_whatever_order_they_come) {
  ChecksumTally forward;
  add_wrong(forward, "f", 100);
  std::vector<ChecksumTally> threads(3);
  for (std::size_t i = 100; i-- > 0;) {
    const Record record{.name = "data/" + std::to_string(i), .size = 4, .crc = 7};
    threads[i % threads.size()].add("f", record, false, [&] {
      return ErrorPlace{.key = "f" + std::to_string(i), .file = "f", .offset = i};
    });
  }
  ChecksumTally merged;
  for (const ChecksumTally& thread : threads) merged.add(thread);
  const Findings found = merged.findings();
  ASSERT_EQ(found.size(), forward.findings().size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].key, forward.findings()[i].key);
    EXPECT_EQ(found[i].message, forward.findings()[i].message);
  }
}

/// Adds wrong records of files: record `number` of the file of that number, modulo `files`. Those
/// of all even files have no checksum, so whether they are damage depends on the rest of the file.
void add_spread(ChecksumTally& tally, std::size_t number, std::size_t files) {
  const std::string file = std::to_string(100 + number % files);
  const bool unset = number % 2 == 0;
  tally.add(file, {.name = "data/0", .size = 4, .crc = unset ? 0U : 7U}, false, [&] {
    return ErrorPlace{.key = "w" + std::to_string(number), .file = file, .offset = number / files};
  });
}

TEST(ChecksumTally, which_of_many_wrong_records_are_told_depends_on_no_order) {
  constexpr std::size_t kFiles = 60;
  constexpr std::size_t kRecords = kFiles * 80;
  std::string first;
  for (const std::size_t step : {1U, 7U, 4799U, 1201U}) {  // prime to the number of records
    std::vector<ChecksumTally> threads(3);
    for (std::size_t i = 0; i < kRecords; ++i) {
      add_spread(threads[i * 3 / kRecords], i * step % kRecords, kFiles);
    }
    ChecksumTally merged;
    for (const ChecksumTally& thread : threads) merged.add(thread);
    std::string told;
    for (const Finding& finding : merged.findings()) told += finding.key + " ";
    if (first.empty()) first = told;
    EXPECT_EQ(told, first) << step;
  }
}

TEST(ChecksumTally, counts_are_by_file_and_those_of_elements_apart) {
  ChecksumTally tally;
  const auto place = [] { return ErrorPlace{}; };
  tally.add("f", {.name = "data.pkl", .size = 4, .crc = 7}, true, place);
  tally.add("f", {.name = "data/0", .size = 4, .crc = 0}, false, place);
  tally.add("f", {.name = "data/1", .size = 4, .crc = 7}, true, place);
  tally.add("g", {.name = "version", .size = 2, .crc = 0}, true, place);
  const auto counts = tally.counts();
  ASSERT_EQ(counts.size(), 2U);
  EXPECT_EQ(counts.at("f").all.records, 3U);
  EXPECT_EQ(counts.at("f").all.mismatches, 1U);
  EXPECT_EQ(counts.at("f").all.unset, 1U);
  EXPECT_EQ(counts.at("f").elements.records, 2U);
  EXPECT_EQ(counts.at("f").elements.mismatches, 1U);
  EXPECT_EQ(counts.at("f").elements.unset, 1U);
  EXPECT_EQ(counts.at("g").elements.records, 0U);
}

/// Adds a file whose writer left out the checksums of all records, or of the elements alone.
void add_switched_off(ChecksumTally& tally, const std::string& file, bool all) {
  const auto place = [] { return ErrorPlace{}; };
  tally.add(file, {.name = "data.pkl", .size = 4, .crc = all ? 0U : 7U}, !all, place);
  tally.add(file, {.name = "data/0", .size = 4, .crc = 0}, false, place);
}

TEST(ChecksumTally, a_note_says_which_records_have_no_checksums) {
  ChecksumTally every;
  add_switched_off(every, "f", true);
  EXPECT_THAT(every.findings().at(0).message, StartsWith("all of 2 records have 0 as"));
  ChecksumTally elements;
  add_switched_off(elements, "f", false);
  EXPECT_THAT(elements.findings().at(0).message, StartsWith("all of 1 records of elements have 0"));
  add_switched_off(elements, "g", true);
  EXPECT_THAT(elements.findings().at(0).message, StartsWith("all of 3 records of elements have 0"));
}

TEST(ChecksumTally, a_note_on_some_files_names_six_of_them) {
  ChecksumTally tally;
  tally.add("whole", {.name = "data/0", .size = 4, .crc = 7}, true, [] { return ErrorPlace{}; });
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) add_switched_off(tally, name, true);
  EXPECT_THAT(tally.findings().at(0).message, HasSubstr(" records in a, b, c, d, e, f have 0"));
  add_switched_off(tally, "g", true);
  EXPECT_THAT(tally.findings().at(0).message,
              HasSubstr(" records in a, b, c, d, e, f and 1 more files have 0"));
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
