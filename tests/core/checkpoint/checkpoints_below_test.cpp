// Tests which checkpoints are found below a directory, with those of several programs beside one
// another, and what is told of the rest.

#include "core/checkpoint/checkpoints_below.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/adapters/posix/posix_store.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/not_root.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::test::checkpoints_below_test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CheckpointsBelowTest : public ::testing::Test {
 protected:
  void copy(const std::string& fixture, const std::string& to) const {
    const fs::path target = fs::path(directory_.path()) / "run" / to;
    fs::create_directories(target.parent_path());
    fs::copy(fs::path(REPRISE_TEST_DATA) / fixture, target, fs::copy_options::recursive);
  }
  void write(const std::string& name) const {
    const fs::path path = fs::path(directory_.path()) / "run" / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "x";
  }
  CheckpointsBelow below() {
    CheckpointsBelow found = checkpoints_below(store_, "run");
    for (auto& path : found.checkpoints) path.erase(0, 4);
    for (auto& beside : found.beside) beside.path.erase(0, 4);
    return found;
  }
  static std::vector<std::string> words(const CheckpointsBelow& found) {
    std::vector<std::string> words;
    for (const auto& beside : found.beside) words.push_back(beside.path + ": " + beside.what);
    return words;
  }

  contracts::TemporaryDirectory directory_;
  PosixStore store_{directory_.path()};
};

TEST_F(CheckpointsBelowTest, iterations_of_a_run_and_what_lies_beside) {
  copy("mcore_0.16.1_gpt_dp2/iter_0000010", "iter_0000010");
  copy("mcore_0.16.1_gpt_dp2/iter_0000010", "iter_0000009");
  write("latest_checkpointed_iteration.txt");
  write("logs/deep/events");
  write("iter_0000011.saving-0123456789abcdef/__0_0.distcp");
  write("iter_0000012/__0_0.distcp");
  fs::create_directory_symlink("iter_0000010", fs::path(directory_.path()) / "run" / "last");
  const CheckpointsBelow found = below();
  EXPECT_THAT(found.checkpoints, ElementsAre("iter_0000009", "iter_0000010", "iter_0000012"));
  EXPECT_THAT(words(found),
              ElementsAre("iter_0000011.saving-0123456789abcdef: left by a save or a removal that "
                          "did not end",
                          "last: a link", "latest_checkpointed_iteration.txt: a file",
                          "logs: a directory"));
}

TEST_F(CheckpointsBelowTest, parts_of_a_step_and_files_of_torch_save) {
  copy("rank_files_2.15.0/fsdp2", "global_step_5/actor");
  copy("torch_2.15.0/same_content_a", "global_step_5/critic");
  copy("torch_save_2.15.0/tensor.pt", "global_step_5/data.pt");
  copy("torch_checkpointing_0.1.1/mesh", "step_1");
  copy("torch_checkpointing_0.1.1/mesh", "tmp_step_2");
  copy("safetensors_0.8.0/one", "export");
  copy("torch_save_2.15.0/training.pt", "export/optimizer.pt");
  const CheckpointsBelow found = below();
  EXPECT_THAT(found.checkpoints,
              ElementsAre("export", "export/optimizer.pt", "global_step_5/actor",
                          "global_step_5/critic", "global_step_5/data.pt", "step_1"));
  EXPECT_THAT(words(found), ElementsAre("tmp_step_2: left by a save that did not end"));
}

TEST_F(CheckpointsBelowTest, what_a_save_left_is_told_where_nothing_else_is) {
  write("job/iter_0000011.saving-0123456789abcdef/__0_0.distcp");
  copy("torch_checkpointing_0.1.1/mesh", "other/tmp_step_2");
  const CheckpointsBelow found = below();
  EXPECT_THAT(found.checkpoints, IsEmpty());
  EXPECT_THAT(words(found), ::testing::IsSupersetOf(
                                {"job/iter_0000011.saving-0123456789abcdef: left by a save or a "
                                 "removal that did not end",
                                 "other/tmp_step_2: left by a save that did not end"}));
}

TEST_F(CheckpointsBelowTest, a_directory_that_can_not_be_read_ends_nothing) {
  copy("torch_2.15.0/same_content_a", "step-1");
  write("closed/x");
  fs::permissions(directory_.path(), fs::perms::all);
  for (const auto& entry : fs::recursive_directory_iterator(directory_.path())) {
    fs::permissions(entry.path(), fs::perms::all);
  }
  fs::permissions(fs::path(directory_.path()) / "run/closed", fs::perms::none);
  CheckpointsBelow found;
  {
    const contracts::NotRoot not_root;
    found = below();
  }
  fs::permissions(fs::path(directory_.path()) / "run/closed", fs::perms::owner_all);
  EXPECT_THAT(found.checkpoints, ElementsAre("step-1"));
  ASSERT_EQ(found.beside.size(), 1U);
  EXPECT_TRUE(found.beside[0].unread);
}

TEST_F(CheckpointsBelowTest, nothing_is_told_as_one_directory) {
  write("logs/events");
  const CheckpointsBelow found = below();
  EXPECT_THAT(found.checkpoints, IsEmpty());
  EXPECT_EQ(found.beside.size(), 1U);
  const auto error = contracts::error_of([&] { checkpoints_below(store_, "none"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kNotFound);
}

}  // namespace
}  // namespace reprise::test::checkpoints_below_test
