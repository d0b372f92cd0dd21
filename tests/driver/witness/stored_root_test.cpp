// Reads folders as programs lay them out, made of checkpoints that torch wrote.
#include "driver/witness/stored_root.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/contracts/temporary_directory.hpp"

namespace reprise::driver {
namespace {

namespace fs = std::filesystem;
const fs::path kData = REPRISE_SOURCE_DIR "/tests/data/torch_2.15.0";

/// Copies two checkpoints with different keys to these folders, and reads the root.
std::vector<StoredCheckpoint> read(const contracts::TemporaryDirectory& root,
                                   const std::string& first, const std::string& second) {
  fs::create_directories(fs::path(root.path()) / first);
  fs::create_directories(fs::path(root.path()) / second);
  const auto how = fs::copy_options::recursive;
  fs::copy(kData / "plain", fs::path(root.path()) / first, how);
  fs::copy(kData / "fsdp2_uneven", fs::path(root.path()) / second, how);
  return read_root(root.path());
}

TEST(StoredRoot, TakesTwoFoldersBelowOneStepAsOneSave) {
  const std::vector<std::pair<std::string, std::string>> layouts = {
      {"step_12/model_0", "step_12/optim_0"},
      {"step_12/model", "step_12/optim"},
      {"checkpoint-12/pytorch_model_fsdp_0", "checkpoint-12/optimizer_0"}};
  for (const auto& [model, optim] : layouts) {
    const contracts::TemporaryDirectory root;
    const auto found = read(root, model, optim);
    ASSERT_EQ(found.size(), 1U) << model;
    EXPECT_EQ(found[0].step, 12);
    EXPECT_FALSE(found[0].flaw.has_value()) << found[0].flaw->text;
    EXPECT_EQ(found[0].parts.size(), 2U);
    const contracts::TemporaryDirectory alone;
    const auto single = read(alone, "a_1", "a_2");
    ASSERT_EQ(single.size(), 2U) << "two steps are two saves";
    EXPECT_EQ(found[0].tensors.size(), single[0].tensors.size() + single[1].tensors.size());
    for (const auto& one : single) {
      for (const auto& [key, digest] : one.tensors) {
        EXPECT_EQ(found[0].tensors.at(key).digest, digest.digest);
        EXPECT_EQ(stored_elements(root.path(), found[0], key),
                  stored_elements(alone.path(), one, key));
      }
    }
  }
}

TEST(StoredRoot, CannotReadAKeyThatIsInTwoParts) {
  const contracts::TemporaryDirectory root;
  for (const char* part : {"step_3/model_0", "step_3/optim_0"}) {
    fs::create_directories(fs::path(root.path()) / part);
    fs::copy(kData / "plain", fs::path(root.path()) / part, fs::copy_options::recursive);
  }
  const auto found = read_root(root.path());
  ASSERT_EQ(found.size(), 1U);
  ASSERT_FALSE(found[0].tensors.empty());
  EXPECT_EQ(found[0].unread.size(), found[0].tensors.size());
  for (const auto& [key, flaw] : found[0].unread) {
    EXPECT_EQ(flaw.code, judged::kOracleVacuous);
    EXPECT_EQ(flaw.text, "it is in several parts of the save");
  }
}

TEST(StoredRoot, FindsADamagedPart) {
  const contracts::TemporaryDirectory root;
  read(root, "step_3/model_0", "step_3/optim_0");
  fs::resize_file(fs::path(root.path()) / "step_3/optim_0/.metadata", 10);
  const auto found = read_root(root.path());
  ASSERT_EQ(found.size(), 1U);
  ASSERT_TRUE(found[0].flaw.has_value());
  EXPECT_THAT(found[0].flaw->text, ::testing::HasSubstr("step_3/optim_0: "));
}

TEST(StoredRoot, KeepsSavesOfTwoStepsApart) {
  for (const auto& [first, second] :
       {std::pair{"run/iter_0000001", "run/iter_0000002"},
        std::pair{"run1/iter_0000001", "run1/iter_0000002"}, std::pair{"iter_0000001", "step_2"}}) {
    const contracts::TemporaryDirectory root;
    const auto found = read(root, first, second);
    ASSERT_EQ(found.size(), 2U) << first;
    EXPECT_EQ(found[0].step, 1);
    EXPECT_EQ(found[1].step, 2);
  }
}

}  // namespace
}  // namespace reprise::driver
