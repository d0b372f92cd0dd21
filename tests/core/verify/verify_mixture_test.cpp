// Tests that `verify` reports signs of two saves whose files are in one directory.

#include "core/verify/verify_mixture.hpp"
#include "core/ports/whole_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "core/format/integrity.hpp"
#include "core/verify/verify.hpp"
#include "tests/fixtures/stored_fixture.hpp"

namespace reprise {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kSecond = 1'000'000'000;

struct FileRow {
  const char* what;
  std::vector<std::int64_t> seconds;  ///< each payload file's time minus the metadata's
  std::vector<std::string> named;     ///< files that the warning names; empty if there is none
  std::uint64_t size = 1000;
};

TEST(CheckTimes, ThoseNewerThanTheMetadataByMoreThanASaveOrACopyTakesAreNamed) {
  const FileRow rows[] = {
      {"a save, which writes the metadata last", {-30, -20, -1, 0}, {}},
      {"all newer", {3600, 3601, 3602}, {}},
      {"a copy that had the metadata in its middle", {-2, -1, 1, 2}, {}},
      {"one file overwritten an hour later", {-5, -4, 3600, -3}, {"f2"}},
      {"two of four", {3600, 3605, -3, -2}, {"f0", "f1"}},
      {"clocks that differ", {-1, 9}, {}},
      {"a second more than clocks may differ", {-1, 12}, {"f1"}},
      {"two files, one some time after the other", {-1, 40, 60}, {"f1", "f2"}},
      {"two files, one long after the other", {-1, 20, 45}, {}},
      {"a save of two hours, a file of an hour later", {-7200, -1, 3600}, {}},
      {"a copy of a file of 100 GB", {-1, 9000}, {}, 100'000'000'000},
      {"a file of 100 GB of the next day", {-1, 86400}, {"f1"}, 100'000'000'000},
      {"empty files say nothing", {-1, 86400}, {}, 0},
  };
  for (const FileRow& row : rows) {
    std::vector<StoredFile> files;
    for (std::size_t i = 0; i < row.seconds.size(); ++i) {
      files.push_back({"ckpt/f" + std::to_string(i), row.size, row.seconds[i] * kSecond});
    }
    Findings found = check_times(files, 0);
    std::erase_if(found,
                  [](const Finding& finding) { return finding.severity == Severity::kNote; });
    ASSERT_EQ(found.size(), row.named.empty() ? 0U : 1U) << row.what;
    if (found.empty()) continue;
    EXPECT_EQ(found[0].severity, Severity::kWarning);
    EXPECT_THAT(found[0].message, HasSubstr(testing::PrintToString(row.named.size()) + " of " +
                                            std::to_string(row.seconds.size())));
    for (const auto& name : row.named) EXPECT_THAT(found[0].message, HasSubstr(name)) << row.what;
  }
}

TEST(CheckTimes, TheWarningSaysInSecondsHowMuchNewerTheFilesAreAtLeast) {
  const Findings found = check_times(
      {{{"ckpt/a", 10, -kSecond}, {"ckpt/b", 10, 3605 * kSecond}, {"ckpt/c", 10, 3600 * kSecond}}},
      0);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].message,
              HasSubstr("2 of 3 payload files were written 3,600.0 s or more after the metadata"));
}

TEST(CheckTimes, WhatClocksMayDifferByIsANote) {
  const auto found = [](std::int64_t tenths) {
    return check_times({{{"ckpt/a", 10, -kSecond / 10}, {"ckpt/b", 10, tenths * kSecond / 10}}}, 0);
  };
  EXPECT_TRUE(found(5).empty()) << "a copy, or another machine";
  ASSERT_EQ(found(18).size(), 1U) << "a save that was killed while it wrote over an older one";
  EXPECT_EQ(found(18)[0].severity, Severity::kNote);
  EXPECT_THAT(found(18)[0].message, HasSubstr("1 of 2 payload files were written 1.8 s or more"));
  EXPECT_EQ(found(150)[0].severity, Severity::kWarning);
}

TEST(CheckTimes, OfTwoOfTheSameTimeTheFirstIsTakenForTheOneThatWasCopied) {
  const std::int64_t later = 9000 * kSecond;
  EXPECT_TRUE(check_times({{{"ckpt/a", 10, -kSecond},
                            {"ckpt/large", 100'000'000'000, later},
                            {"ckpt/small", 10, later}}},
                          0)
                  .empty());
}

TEST(CheckTimes, WhatHasNoTimeSaysNothing) {
  EXPECT_TRUE(
      check_times({{{"ckpt/a", 10, std::nullopt}, {"ckpt/b", 10, std::nullopt}}}, 0).empty());
}

VerifyReport verify_root(Store& store) {
  NoProgress progress;
  return verify(store, "ckpt", PayloadCheck::kRead, progress);
}

std::size_t of_mixtures(const VerifyReport& report, Severity severity) {
  return static_cast<std::size_t>(std::count_if(
      report.findings.begin(), report.findings.end(), [severity](const Finding& finding) {
        return finding.code == kMixtureCode && finding.severity == severity;
      }));
}

void make_newer(const std::filesystem::path& file, std::chrono::seconds by) {
  std::filesystem::last_write_time(file, std::filesystem::last_write_time(file) + by);
}

TEST(Verify, APayloadFileOfALaterTimeIsAWarning) {
  test::FixtureCopy copy("torch_2.15.0/same_content_a");
  EXPECT_EQ(of_mixtures(verify_root(copy.store), Severity::kWarning), 0U);
  make_newer(copy.path("ckpt") / "__0_0.distcp", std::chrono::hours(1));
  const VerifyReport report = verify_root(copy.store);
  EXPECT_EQ(report.verdict(), VerifyVerdict::kWhole);
  EXPECT_EQ(of_mixtures(report, Severity::kWarning), 1U);
  EXPECT_EQ(report.strict_warnings(), 1U);
  EXPECT_FALSE(report.manifest);
}

TEST(Verify, AManifestThatAgreesTiesAllFilesToOneSave) {
  test::FixtureCopy copy("torch_2.15.0/same_content_a");
  IntegrityManifest manifest;
  for (const auto& entry : std::filesystem::directory_iterator(copy.path("ckpt"))) {
    const std::string name = entry.path().filename();
    Sha256 sha;
    sha.update(read_all(copy.store, "ckpt/" + name, 1U << 20U));
    manifest.files.push_back({name, sha.digest()});
  }
  std::ofstream(copy.path("ckpt") / "integrity.json") << as_text(write_integrity(manifest));
  make_newer(copy.path("ckpt") / "__0_0.distcp", std::chrono::hours(1));
  const VerifyReport report = verify_root(copy.store);
  EXPECT_EQ(report.verdict(), VerifyVerdict::kWhole);
  EXPECT_EQ(count_of(report.findings, Severity::kWarning), 0U);
  EXPECT_TRUE(report.manifest);
}

TEST(Verify, AManifestThatLacksAFileTiesNothingTogether) {
  for (const std::string lacks : {".metadata", "__0_0.distcp", "all"}) {
    SCOPED_TRACE(lacks);
    test::FixtureCopy copy("torch_2.15.0/same_content_a");
    IntegrityManifest manifest;
    for (const auto& entry : std::filesystem::directory_iterator(copy.path("ckpt"))) {
      const std::string name = entry.path().filename();
      Sha256 sha;
      sha.update(read_all(copy.store, "ckpt/" + name, 1U << 20U));
      if (lacks != "all" && lacks != name) manifest.files.push_back({name, sha.digest()});
    }
    std::ofstream(copy.path("ckpt") / "integrity.json") << as_text(write_integrity(manifest));
    make_newer(copy.path("ckpt") / "__0_0.distcp", std::chrono::hours(1));
    const VerifyReport report = verify_root(copy.store);
    EXPECT_EQ(report.verdict(), VerifyVerdict::kWhole);
    EXPECT_FALSE(report.manifest);
    EXPECT_TRUE(report.partial_manifest);
    EXPECT_EQ(of_mixtures(report, Severity::kWarning), 1U);
    EXPECT_GE(count_of(report.findings, Severity::kWarning), 2U);
  }
}

TEST(Verify, APayloadFileCopiedOverAnotherOfItsSizeIsNoted) {
  test::FixtureCopy copy("torch_2.15.0/fsdp2_model");
  EXPECT_EQ(of_mixtures(verify_root(copy.store), Severity::kNote), 0U);
  const auto to = copy.path("ckpt") / "__2_0.distcp";
  const auto time = std::filesystem::last_write_time(to);
  std::filesystem::copy_file(copy.path("ckpt") / "__1_0.distcp", to,
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::last_write_time(to, time);
  const VerifyReport report = verify_root(copy.store);
  EXPECT_EQ(of_mixtures(report, Severity::kNote), 1U);
  EXPECT_EQ(of_mixtures(report, Severity::kWarning), 0U);
}

}  // namespace
}  // namespace reprise
