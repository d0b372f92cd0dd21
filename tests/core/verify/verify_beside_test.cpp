// Tests that verify does not report damage where there is none: links, files that users added, keys
// that only look like shards, unsupported formats, and files that can't be opened.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/ports/passing_store.hpp"
#include "core/verify/verify.hpp"
#include "core/verify/verify_planner.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/fixtures/stored_fixture.hpp"

namespace reprise {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kPlain = "torch_2.15.0/same_content_a";
constexpr const char* kMegatron = "mcore_0.16.1_gpt_dp2/iter_0000010";

VerifyReport verify_in(Store& store, const std::string& path = "ckpt") {
  NoProgress progress;
  return verify(store, path, PayloadCheck::kRead, progress);
}

std::string words_of(const VerifyReport& report) {
  std::ostringstream out;
  for (const auto& finding : report.findings) out << finding << '\n';
  return out.str();
}

void write(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

TEST(Verify, ACacheOfLinksToBlobsIsWhole) {
  test::FixtureCopy copy(kPlain);
  fs::create_directories(copy.path("hub/blobs"));
  fs::create_directories(copy.path("hub/snapshots/main"));
  for (const auto& entry : fs::directory_iterator(copy.path("ckpt"))) {
    const std::string name = entry.path().filename();
    fs::rename(entry.path(), copy.path("hub/blobs/of" + name));
    fs::create_symlink("../../blobs/of" + name, copy.path("hub/snapshots/main/" + name));
  }
  const VerifyReport report = verify_in(copy.store, "hub/snapshots/main");
  EXPECT_EQ(report.verdict(), VerifyVerdict::kWhole) << words_of(report);
  EXPECT_GT(report.records_checked, 0U);
}

TEST(Verify, PlainDcpMayHaveFilesOfTheUsersOwnBesideIt) {
  const std::pair<const char*, const char*> files[] = {
      {"metadata.json", R"({"run": "seven", "lr": 0.1})"},
      {"metadata.json", "notes, no JSON"},
      {"integrity.json", R"({"score": 1.0})"},
      {"common.pt", "no pickle"},
  };
  for (const auto& [name, text] : files) {
    test::FixtureCopy copy(kPlain);
    write(copy.path("ckpt") / name, text);
    const VerifyReport report = verify_in(copy.store);
    EXPECT_EQ(report.verdict(), VerifyVerdict::kWhole) << name << '\n' << words_of(report);
    EXPECT_EQ(count_of(report.findings, Severity::kWarning), 0U) << words_of(report);
    EXPECT_THAT(words_of(report), AllOf(HasSubstr("skipped"), HasSubstr(name)));
    EXPECT_FALSE(report.manifest);
    Checkpoint checkpoint = Checkpoint::open(copy.store, "ckpt");
    EXPECT_FALSE(checkpoint.common());
    EXPECT_FALSE(checkpoint.lost_common());
  }
}

TEST(Verify, DamagedFilesOfMegatronAreNotTakenForTheUsersOwn) {
  const std::pair<const char*, const char*> files[] = {
      {"metadata.json", R"({"sharded_backend_version": 1, "common_backend": "torch"})"},
      {"metadata.json", R"({"sharded_backend": "torch_dist", )"},
      {"metadata.json", "\1\2\3"},
      {"metadata.json", ""},
      {"integrity.json", R"({"files": {}})"},
      {"integrity.json", "overwritten"},
      {"common.pt", "overwritten"},
  };
  for (const auto& [name, text] : files) {
    test::FixtureCopy copy(kMegatron);
    write(copy.path("ckpt") / name, text);
    const VerifyReport report = verify_in(copy.store);
    EXPECT_EQ(report.verdict(), VerifyVerdict::kDamaged) << name << ' ' << text;
  }
}

/// Rewrites a fixture's `.metadata` after `change` has edited its content.
template <class Change>
void rewrite_metadata(test::FixtureCopy& copy, Change&& change) {
  Checkpoint checkpoint = Checkpoint::open(copy.store, "ckpt");
  Metadata metadata = checkpoint.metadata();
  change(metadata);
  write(copy.path("ckpt") / ".metadata", as_text(write_metadata(metadata)));
}

TEST(Verify, AKeyOfPlainDcpMayLookLikeAShard) {
  const auto rename = [](Metadata& metadata) {
    const std::string before = metadata.catalog.objects.at(0).key;
    metadata.catalog.objects[0].key = "a/shard_1_8";
    for (auto& entry : metadata.planner_data) {
      if (entry.key == before) entry = {"a/shard_1_8", {std::string("a/shard_1_8")}};
    }
  };
  test::FixtureCopy copy(kPlain);
  rewrite_metadata(copy, rename);
  const VerifyReport plain = verify_in(copy.store);
  EXPECT_EQ(plain.verdict(), VerifyVerdict::kWhole) << words_of(plain);
  EXPECT_EQ(count_of(plain.findings, Severity::kWarning), 0U) << words_of(plain);
  write(copy.path("ckpt") / "metadata.json", R"({"sharded_backend": "torch_dist"})");
  EXPECT_THAT(words_of(verify_in(copy.store)),
              HasSubstr("error COVERAGE_GAP: 7 of 8 shards are missing"));
}

TEST(Verify, PlannerDataThatDisagreesWithTheKeysIsAWarning) {
  struct Row {
    const char* words;
    void (*change)(std::vector<PlannerEntry>&);
  };
  const Row rows[] = {
      {"no path for keys", [](auto& planner) { planner.pop_back(); }},
      {"keys that do not exist",
       [](auto& planner) {
         planner.push_back({"gone", {std::string("gone")}});
       }},
      {"paths with other names", [](auto& planner) { planner[0].path = {std::string("other")}; }},
      {"two keys one path", [](auto& planner) { planner[0].path = planner[1].path; }},
  };
  for (const Row& row : rows) {
    test::FixtureCopy copy("vectors/ck_p4");
    Metadata metadata = Checkpoint::open(copy.store, "ckpt").metadata();
    ASSERT_GT(metadata.planner_data.size(), 1U);
    row.change(metadata.planner_data);
    // The changed metadata is only kept in memory. Writing it to a file would add the entries that
    // planner_data lacks.
    const Checkpoint changed(copy.store, {"ckpt", {}, {}}, metadata);
    EXPECT_THAT(words_of({.findings = check_planner(changed.metadata())}), HasSubstr(row.words));
  }
}

TEST(Verify, WhatIsWrittenInAFormatThatIsNotReadIsNotCalledDamaged) {
  const std::pair<std::string, const char*> rows[] = {
      {std::string("\x28\xb5\x2f\xfd", 4), "zstd"},
      {std::string("\x40\0\0\0\0\0\0\0{\"__metadata__\":", 24), "safetensors"},
  };
  for (const auto& [text, word] : rows) {
    test::FixtureCopy copy(kPlain);
    std::fstream file(copy.path("ckpt") / "__0_0.distcp",
                      std::ios::in | std::ios::out | std::ios::binary);
    file << text;
    file.close();
    const VerifyReport report = verify_in(copy.store);
    EXPECT_EQ(report.verdict(), VerifyVerdict::kNotSupported) << words_of(report);
    EXPECT_THAT(words_of(report), HasSubstr(word));
  }
  test::FixtureCopy copy(kPlain);
  rewrite_metadata(copy, [](Metadata& metadata) {
    metadata.catalog.objects.at(0).key = std::string(20000, 'k');
  });
  const VerifyReport report = verify_in(copy.store);
  EXPECT_EQ(report.verdict(), VerifyVerdict::kNotSupported) << words_of(report);
  EXPECT_THAT(words_of(report), HasSubstr("20000 bytes"));
}

TEST(Verify, WhatIsTooLargeToBeReadIsNotCalledDamaged) {
  const std::pair<const char*, std::uintmax_t> rows[] = {
      {".metadata", std::uintmax_t{4} << 30U},
      {"metadata.json", std::uintmax_t{65} << 20U},
      {"integrity.json", std::uintmax_t{65} << 20U},
  };
  for (const auto& [name, bytes] : rows) {
    test::FixtureCopy copy(kMegatron);
    if (name != std::string(".metadata")) write(copy.path("ckpt") / name, "{");
    fs::resize_file(copy.path("ckpt") / name, bytes);  // most of the file is a hole
    const VerifyReport report = verify_in(copy.store);
    EXPECT_EQ(report.verdict(), VerifyVerdict::kNotSupported) << name << '\n' << words_of(report);
    EXPECT_THAT(words_of(report), AllOf(HasSubstr("UNSUPPORTED"), HasSubstr(name)));
  }
  test::FixtureCopy copy(kMegatron);
  write(copy.path("ckpt") / "integrity.json", std::string(100, '[').insert(0, "{\"files\": "));
  EXPECT_EQ(verify_in(copy.store).verdict(), VerifyVerdict::kNotSupported);
}

/// A store that refuses to open one file.
class LockedStore final : public PassingStore {
 public:
  LockedStore(Store& inner, std::string name) : PassingStore(inner), name_(std::move(name)) {}
  std::unique_ptr<ReadFile> open(const std::string& path) override {
    if (path.ends_with(name_)) {
      throw Error(Code::kIo, "open: Permission denied", {.file = display(path)});
    }
    return PassingStore::open(path);
  }

 private:
  std::string name_;
};

TEST(Verify, AFileThatCantBeOpenedIsOneFindingWithItsCause) {
  for (const char* fixture : {kPlain, kMegatron}) {
    LockedStore store(test::data_store(), "__0_0.distcp");
    const VerifyReport report = verify_in(store, fixture);
    EXPECT_EQ(report.verdict(), VerifyVerdict::kUnreadable) << words_of(report);
    ASSERT_EQ(count_of(report.findings, Severity::kError), 1U) << words_of(report);
    EXPECT_THAT(words_of(report),
                AllOf(HasSubstr("Permission denied"), HasSubstr("items of this file")));
  }
}

TEST(Verify, EachFileThatCantBeOpenedIsAFinding) {
  test::FixtureCopy copy(kPlain);
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(copy.path("ckpt"))) {
    if (entry.path().extension() == ".distcp") ++files;
  }
  ASSERT_GT(files, 1U);
  LockedStore store(copy.store, ".distcp");
  const VerifyReport report = verify_in(store);
  EXPECT_EQ(count_of(report.findings, Severity::kError), files) << words_of(report);
}

/// Returns the message for a directory without a checkpoint.
std::string words_without(Store& store, const std::string& path) {
  const auto error = contracts::error_of([&] { locate(store, path); });
  return error ? error->what() : "nothing was thrown";
}

TEST(Locate, ADirectoryOfCheckpointsNamesThem) {
  test::FixtureCopy copy(kPlain);
  const auto copied = [&copy](const std::string& to) {
    fs::create_directories(copy.path(to));
    fs::copy(copy.path("ckpt") / ".metadata", copy.path(to) / ".metadata");
  };
  for (const char* step : {"step-3", "step-10", "step-9"}) copied(std::string("titan/") + step);
  EXPECT_THAT(words_without(copy.store, "titan"),
              AllOf(HasSubstr("step-10, step-9, step-3;"), HasSubstr("titan/step-10")));
  copied("accelerate/checkpoint_0/pytorch_model_fsdp_0");
  EXPECT_THAT(words_without(copy.store, "accelerate"),
              HasSubstr("checkpoint_0/pytorch_model_fsdp_0"));
  for (int i = 1; i <= 8; ++i) copied("megatron/iter_000000" + std::to_string(i));
  EXPECT_THAT(words_without(copy.store, "megatron"),
              AllOf(HasSubstr("iter_0000008, iter_0000007"), HasSubstr("and 3 more"),
                    Not(HasSubstr("iter_0000003"))));
  fs::create_directories(copy.path("empty/sub"));
  EXPECT_THAT(words_without(copy.store, "empty"), HasSubstr("none below it"));
  write(copy.path("empty/model.safetensors"), "x");
  EXPECT_THAT(words_without(copy.store, "empty"),
              HasSubstr("UNSUPPORTED: a Hugging Face checkpoint (model.safetensors)"));
}

}  // namespace
}  // namespace reprise
