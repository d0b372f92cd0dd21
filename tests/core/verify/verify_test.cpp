// Tests `verify` on checkpoints that torch and Megatron wrote, and on damaged copies of these
// checkpoints.

#include "core/verify/verify.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "core/checkpoint/extents.hpp"
#include "core/checkpoint/set_aside.hpp"
#include "core/format/zip/archive.hpp"
#include "core/ports/whole_file.hpp"
#include "core/save/image_writer.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/fixtures/stored_fixture.hpp"
#include "tests/fixtures/written_checkpoint.hpp"

namespace reprise {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string words_of(const Findings& findings) {
  std::ostringstream out;
  for (const auto& finding : findings) out << finding << '\n';
  return out.str();
}

VerifyReport verify_at(Store& store, const std::string& path,
                       PayloadCheck payload = PayloadCheck::kRead) {
  NoProgress progress;
  return verify(store, path, payload, progress);
}

const std::vector<std::string> kFixtures = {"torch_2.15.0/async_threads",
                                            "torch_2.15.0/different_content",
                                            "torch_2.15.0/file_per_item",
                                            "torch_2.15.0/fsdp2_model",
                                            "torch_2.15.0/fsdp2_tp_strided",
                                            "torch_2.15.0/fsdp2_uneven",
                                            "torch_2.15.0/nocollectives",
                                            "torch_2.15.0/plain",
                                            "torch_2.15.0/plain_odd",

                                            "torch_2.15.0/replicated",
                                            "torch_2.15.0/replicated_lowest_rank",
                                            "torch_2.15.0/same_content_a",
                                            "torch_2.15.0/same_content_b",
                                            "torch_2.15.0/sd_view_strided",
                                            "torch_2.4.1/same_content_a",
                                            "torch_2.9.1/same_content_b",
                                            "mcore_0.16.1_gpt_dp2",
                                            "mcore_0.16.1_gpt_tp2_pp2",
                                            "vectors/ck_p4",
                                            "vectors/ck_p2"};

TEST(Verify, WhatOtherProgramsWroteIsWhole) {
  for (const auto& fixture : kFixtures) {
    const VerifyReport report = verify_at(test::data_store(), fixture);
    EXPECT_TRUE(report.whole()) << fixture << '\n' << words_of(report.findings);
    EXPECT_EQ(count_of(report.findings, Severity::kWarning), 0U) << fixture << '\n'
                                                                 << words_of(report.findings);
    EXPECT_GT(report.elements, 0U) << fixture;
    EXPECT_GT(report.records_checked, 0U) << fixture;
  }
}

TEST(Verify, AFlippedBitInThePayloadIsFoundByItsChecksum) {
  for (const std::string record : {"data/0", ".data/serialization_id"}) {
    test::FixtureCopy copy("torch_2.15.0/same_content_a");
    Checkpoint checkpoint = Checkpoint::open(copy.store, "ckpt");
    const StoredTensor& tensor = *checkpoint.catalog().tensor("layers.0.weight");
    const StoredChunk& chunk = tensor.chunks.at(0);
    const auto item = checkpoint.slice(tensor.key, chunk.file, chunk.range);
    Archive archive(*item);
    const auto at = chunk.range.offset + archive.content_range(archive.at(record)).offset;
    {
      std::fstream file(copy.path("ckpt") / checkpoint.catalog().files[chunk.file],
                        std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(at));
      file.put('\x55');
    }
    const VerifyReport report = verify_at(copy.store, "ckpt");
    EXPECT_FALSE(report.whole());
    ASSERT_EQ(count_of(report.findings, Severity::kError), 1U) << words_of(report.findings);
    EXPECT_EQ(report.findings[0].code, Code::kChecksum) << record;
    EXPECT_EQ(report.findings[0].offset, at) << record;
    EXPECT_THAT(report.findings[0].message, HasSubstr(record));
    EXPECT_TRUE(verify_at(copy.store, "ckpt", PayloadCheck::kSkip).whole());
  }
}

TEST(Verify, ItemsThatAreNotParsedCountLikeThoseThatAre) {
  for (const auto& fixture : kFixtures) {
    if (!fixture.starts_with("torch")) continue;  // others have further files with records
    Checkpoint checkpoint = Checkpoint::open(test::data_store(), fixture);
    std::uint64_t records = 0;
    const auto count = [&](const std::string& key, FileIndex file, ByteRange range) {
      const auto item = checkpoint.slice(key, file, range);
      Archive archive(*item);
      for (const Record& record : archive.records()) records += record.size > 0 ? 1 : 0;
    };
    for (const auto& tensor : checkpoint.catalog().tensors) {
      for (const auto& chunk : tensor.chunks) count(tensor.key, chunk.file, chunk.range);
    }
    for (const auto& object : checkpoint.catalog().objects) {
      count(object.key, object.file, object.range);
    }
    EXPECT_EQ(verify_at(test::data_store(), fixture).records_checked, records) << fixture;
  }
}

/// Replaces each byte of the items' checksums by the result of `by` for that byte. Only the
/// checksums in the central directories are replaced.
void replace_checksums(const std::filesystem::path& file, char (*by)(char)) {
  std::ifstream in(file, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  in.close();
  for (auto at = bytes.find("PK\x01\x02"); at != std::string::npos;
       at = bytes.find("PK\x01\x02", at + 4)) {
    for (std::size_t i = 16; i < 20; ++i) bytes[at + i] = by(bytes[at + i]);
  }
  std::ofstream(file, std::ios::binary) << bytes;
}

TEST(Verify, ChecksumsAllZeroWereSwitchedOffAndOtherWrongOnesAreDamage) {
  test::FixtureCopy copy("torch_2.15.0/same_content_a");
  const auto replace = [&copy](char (*by)(char)) {
    for (const auto& entry : std::filesystem::directory_iterator(copy.path("ckpt"))) {
      if (entry.path().extension() == ".distcp") replace_checksums(entry.path(), by);
    }
    return verify_at(copy.store, "ckpt");
  };
  const VerifyReport wrong = replace([](char c) { return static_cast<char>(c ^ 0x5a); });
  EXPECT_FALSE(wrong.whole());
  EXPECT_THAT(words_of(wrong.findings), Not(HasSubstr("switched")));
  const VerifyReport zero = replace([](char) { return '\0'; });
  EXPECT_TRUE(zero.whole()) << words_of(zero.findings);
  EXPECT_THAT(words_of(zero.findings), HasSubstr("switched off"));
}

TEST(Verify, AnObjectOfAnUnknownClassIsANote) {
  test::WrittenCheckpoint written;
  written.bytes("w", 4, 1)
      .object("known", 1)
      .item("foreign",
            read_all(test::data_store(), "torch_2.15.0/objects/foreign_class.pt", 1U << 20U));
  const VerifyReport report = verify_at(written.store(), "ckpt");
  EXPECT_TRUE(report.whole()) << words_of(report.findings);
  EXPECT_EQ(report.opaque, std::vector<std::string>{"foreign"});
  EXPECT_THAT(words_of(report.findings), HasSubstr("opaque, kept as bytes"));
}

/// Items that only touch share no bytes.
TEST(Verify, ForeignBytesItemsAreReadUpToASecondReadingOfTheFile) {
  test::WrittenCheckpoint written;
  Metadata metadata =
      Checkpoint::open(written.object("a", 1).object("b", 2).store(), "ckpt").metadata();
  auto& objects = metadata.catalog.objects;
  ASSERT_EQ(objects[0].range.size, objects[1].range.size);
  for (const std::string key : {"c", "d", "e"}) {
    objects.push_back({.key = key, .file = 0, .range = objects[1].range});
    written.write("ckpt/.metadata", write_metadata(metadata));
    PosixStore store(written.path());
    const std::string words = words_of(verify_at(store, "ckpt").findings);
    EXPECT_EQ(words.find("1 items that overlap others were not read") != words.npos, key == "e")
        << words;
  }
}

TEST(Verify, StalePayloadIsAWarningAndAnEmptyFileIsNot) {
  test::FixtureCopy copy("torch_2.15.0/same_content_a");
  std::ofstream(copy.path("ckpt") / "__9_0.distcp") << "left over";
  std::ofstream empty(copy.path("ckpt") / "__8_0.distcp");
  empty.close();
  const VerifyReport report = verify_at(copy.store, "ckpt");
  EXPECT_TRUE(report.whole());
  EXPECT_THAT(words_of(report.findings), HasSubstr("__9_0.distcp"));
  EXPECT_THAT(words_of(report.findings), Not(HasSubstr("__8_0.distcp")));
}

const std::string kToken = "0123456789abcdef";

/// Creates a directory that contains only `file`, or nothing if `file` is empty.
void put(const std::filesystem::path& directory, const std::string& file) {
  std::filesystem::create_directory(directory);
  if (!file.empty()) std::ofstream(directory / file) << "x";
}

TEST(Verify, LeftoversOfCrashedSavesAreNotedIfTheyCarryTheMark) {
  test::FixtureCopy copy("torch_2.15.0/same_content_a");
  put(copy.path("ckpt.saving-" + kToken), mark_of(kToken));
  put(copy.path("another.saving-" + kToken), mark_of(kToken));
  put(copy.path("foo.saving"), "thesis.txt");
  put(copy.path("foo.saving-" + kToken), "thesis.txt");
  put(copy.path("empty.saving"), "");
  put(copy.path("ckpt.replaced"), ".metadata");
  put(copy.path("ckpt.replaced-" + kToken), ".metadata");
  const VerifyReport report = verify_at(copy.store, "ckpt");
  EXPECT_TRUE(report.whole());
  std::vector<std::string> named;
  for (const auto& finding : report.findings) named.push_back(finding.message);
  EXPECT_THAT(
      named,
      ::testing::ElementsAre(
          "left by an unfinished save; safe to remove while no save is running: ckpt.saving-" +
          kToken));
}

TEST(Verify, WhatAWriterAtWorkMadeIsNoLeftover) {
  for (const std::string suffix : {".saving-", ".replaced-"}) {
    test::FixtureCopy copy("torch_2.15.0/same_content_a");
    put(copy.path("ckpt" + suffix + kToken), mark_of(kToken));
    auto lock = copy.store.lock("ckpt");
    const std::string words = words_of(verify_at(copy.store, "ckpt").findings);
    EXPECT_THAT(words,
                HasSubstr("still being written, not a leftover; keep it: ckpt" + suffix + kToken));
    EXPECT_THAT(words, HasSubstr("process " + std::to_string(::getpid())));
    EXPECT_THAT(words, Not(HasSubstr("safe to remove")));
    lock.reset();
    const std::string after = words_of(verify_at(copy.store, "ckpt").findings);
    EXPECT_THAT(after,
                HasSubstr("safe to remove while no save is running: ckpt" + suffix + kToken));
  }
}

TEST(Verify, TheOnlyCopyIsNeverCalledSafeToRemove) {
  test::FixtureCopy copy("mcore_0.16.1_gpt_dp2");
  const auto ten = copy.path("ckpt") / "iter_0000010";
  std::filesystem::rename(ten, ten.string() + ".replaced");
  std::filesystem::create_directory(copy.path("ckpt") / "iter_0000020.replaced");
  std::filesystem::create_directory(copy.path("ckpt") / ("iter_0000030.saving-" + kToken));
  const VerifyReport report = verify_at(copy.store, "ckpt");
  EXPECT_TRUE(report.whole()) << words_of(report.findings);
  const std::string words = words_of(report.findings);
  EXPECT_THAT(words, HasSubstr("safe to remove while no save is running: iter_0000030.saving-"));
  EXPECT_THAT(words, Not(HasSubstr("iter_0000020.replaced")));
  EXPECT_THAT(words, HasSubstr("the only copy"));
}

/// If a writer dies after it exchanged the old and the new checkpoint but before it confirmed the
/// exchange, the old checkpoint remains under the temporary name of the new one.
TEST(Verify, WhatMadeWayIsSafeToRemoveOnceItsSuccessorWasConfirmed) {
  for (const std::string suffix : {".replaced-", ".saving-"}) {
    test::FixtureCopy copy("torch_2.15.0/same_content_a");
    const auto old = copy.path("ckpt" + suffix + kToken);
    std::filesystem::copy(copy.path("ckpt"), old);
    put(old, old_mark_of(kToken));
    put(copy.path("ckpt"), mark_of(kToken));
    const std::string before = words_of(verify_at(copy.store, "ckpt").findings);
    EXPECT_THAT(before, Not(HasSubstr("safe to remove")));
    EXPECT_THAT(before, HasSubstr("keep it: ckpt" + suffix));
    std::filesystem::remove(copy.path("ckpt") / mark_of(kToken));
    const std::string words = words_of(verify_at(copy.store, "ckpt").findings);
    EXPECT_THAT(words, HasSubstr("safe to remove while no save is running: ckpt" + suffix));
    EXPECT_THAT(words, Not(HasSubstr("keep it")));
  }
}

TEST(Verify, ASaveThatTheTrackerDoesNotNameIsTold) {
  test::FixtureCopy copy("mcore_0.16.1_gpt_dp2");
  const auto root = copy.path("ckpt");
  std::filesystem::copy(root / "iter_0000010", root / "iter_0000020");
  std::filesystem::create_directory(root / "iter_0000030");
  const auto at = [&](int seconds) {
    std::filesystem::last_write_time(
        root / "iter_0000020/.metadata",
        std::filesystem::last_write_time(root / "latest_checkpointed_iteration.txt") +
            std::chrono::seconds(seconds));
    return verify_at(copy.store, "ckpt");
  };
  const VerifyReport later = at(1);
  EXPECT_EQ(count_of(later.findings, Severity::kWarning), 1U) << words_of(later.findings);
  EXPECT_THAT(words_of(later.findings),
              AllOf(HasSubstr("warning INCOMPLETE_SELECTED"), HasSubstr("iter_0000020;"),
                    HasSubstr("no metadata: iter_0000030")));
  const VerifyReport earlier = at(-1);
  EXPECT_EQ(count_of(earlier.findings, Severity::kWarning), 0U) << "a job that went back";
  EXPECT_THAT(words_of(earlier.findings), HasSubstr("note INCOMPLETE_SELECTED"));
  EXPECT_THAT(words_of(verify_at(copy.store, "ckpt/iter_0000010").findings),
              Not(HasSubstr("iter_0000020")));
}

TEST(Verify, ACheckpointWithinIsVerifiedToo) {
  test::FixtureCopy copy("mcore_0.16.1_gpt_dp2");
  const auto within = copy.path("ckpt") / "iter_0000010/modelopt_state";
  std::filesystem::copy(std::string(REPRISE_TEST_DATA) + "/torch_2.15.0/same_content_a", within);
  EXPECT_TRUE(verify_at(copy.store, "ckpt").whole());
  std::filesystem::remove(within / "__0_0.distcp");
  for (const PayloadCheck payload : {PayloadCheck::kRead, PayloadCheck::kSkip}) {
    const VerifyReport report = verify_at(copy.store, "ckpt", payload);
    EXPECT_EQ(report.verdict(), VerifyVerdict::kDamaged);
    EXPECT_THAT(words_of(report.findings), HasSubstr("modelopt_state/__0_0.distcp"));
  }
}

TEST(Verify, NemosMarkOfAnUnfinishedSaveIsTold) {
  test::FixtureCopy copy("mcore_0.16.1_gpt_dp2");
  std::filesystem::create_directory(copy.path("last"));
  std::filesystem::rename(copy.path("ckpt") / "iter_0000010", copy.path("last") / "weights");
  EXPECT_EQ(verify_at(copy.store, "last/weights").strict_warnings(), 0U);
  put(copy.path("."), "last-unfinished");
  const VerifyReport report = verify_at(copy.store, "last/weights");
  EXPECT_EQ(report.strict_warnings(), 1U) << words_of(report.findings);
  EXPECT_THAT(words_of(report.findings), HasSubstr("last-unfinished"));
}

TEST(Verify, TheCommonStateOfAnotherIterationIsTold) {
  test::FixtureCopy copy("mcore_0.16.1_gpt_dp2");
  std::filesystem::rename(copy.path("ckpt") / "iter_0000010", copy.path("ckpt") / "iter_0000030");
  const VerifyReport report = verify_at(copy.store, "ckpt/iter_0000030");
  EXPECT_EQ(report.strict_warnings(), 1U);
  EXPECT_THAT(words_of(report.findings), HasSubstr("iteration 10"));
}

TEST(Verify, BytesAfterTheLastItemAreTold) {
  for (const char* fixture : {"mcore_0.16.1_gpt_dp2", "torch_2.15.0/nocollectives"}) {
    test::FixtureCopy copy(fixture);
    const Location location = locate(copy.store, "ckpt");
    std::ofstream(copy.path(location.directory) / "__0_0.distcp", std::ios::app) << "x";
    const VerifyReport report = verify_at(copy.store, "ckpt", PayloadCheck::kSkip);
    EXPECT_EQ(report.strict_warnings(), 1U) << words_of(report.findings);
    EXPECT_THAT(words_of(report.findings), HasSubstr("1 byte follow"));
  }
}

TEST(Verify, AManifestThatDisagreesIsAnError) {
  test::FixtureCopy copy("torch_2.15.0/same_content_a");
  std::ofstream(copy.path("ckpt") / "integrity.json")
      << R"({"algorithm": "sha256", "files": {".metadata": ")" << std::string(64, '0')
      << R"(", "gone": ")" << std::string(64, '1') << R"("}})";
  const VerifyReport report = verify_at(copy.store, "ckpt");
  EXPECT_EQ(count_of(report.findings, Severity::kError), 2U) << words_of(report.findings);
  EXPECT_THAT(words_of(report.findings), HasSubstr("its SHA-256 is not the one"));
  EXPECT_THAT(words_of(report.findings),
              HasSubstr("integrity.json lists it, but it does not exist"));
}

TEST(Verify, AMegatronCheckpointWithoutItsCommonStateIsDamaged) {
  test::FixtureCopy copy("mcore_0.16.1_gpt_dp2");
  std::filesystem::remove(copy.path("ckpt") / "iter_0000010" / "common.pt");
  EXPECT_THAT(words_of(verify_at(copy.store, "ckpt").findings),
              HasSubstr("the common state is missing"));
}

TEST(Verify, ADanglingTrackerIsAnErrorAndNothingAtAllIsThrown) {
  test::FixtureCopy copy("mcore_0.16.1_gpt_dp2");
  std::ofstream(copy.path("ckpt") / "latest_checkpointed_iteration.txt") << "11";
  const VerifyReport report = verify_at(copy.store, "ckpt");
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].code, Code::kTrackerDangling);
  EXPECT_EQ(contracts::code_of([&] { verify_at(copy.store, "nowhere"); }), Code::kNotFound);
}

}  // namespace
}  // namespace reprise
