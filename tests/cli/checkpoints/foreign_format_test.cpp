// Tests what every verb that reads checkpoints says of forms that are not read.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/damage.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test::foreign_format_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

void write(const fs::path& file, const std::string& content = "x") {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << content;
}

void expect_named_by_every_verb(const std::string& path, const std::string& what,
                                const std::string& advice) {
  const std::string good = data("torch_2.15.0/plain");
  for (const auto& words :
       std::vector<std::vector<std::string>>{{"inspect", path},
                                             {"verify", path},
                                             {"diff", path, good},
                                             {"diff", good, path},
                                             {"reshard", path, path + "_out"}}) {
    const auto result = run_program(words);
    EXPECT_EQ(result.exit_code, 2) << words[0] << result.all();
    EXPECT_THAT(result.all(), AllOf(HasSubstr(what), HasSubstr(advice))) << words[0];
  }
  EXPECT_FALSE(fs::exists(path + "_out"));
}

TEST(ForeignFormatVerbs, each_verb_names_the_format_and_says_what_to_do) {
  struct Row {
    std::vector<const char*> files;
    const char* what;
    const char* advice;
  };
  const std::vector<Row> rows = {
      {{"global_step9/mp_rank_00_model_states.pt"}, "a DeepSpeed checkpoint", "zero_to_fp32.py"},
      {{"_CHECKPOINT_METADATA", "d/x"}, "an Orbax checkpoint", "restore it with Orbax"},
      {{"last.ckpt"}, "Lightning", "name the file to read it"},
      {{"model.pt"}, "files of torch.save", "name the file to read it"},
      {{"w/.zarray", "metadata.json"}, "zarr", "--ckpt-convert-format torch_dist"},
      {{"iter_0000005/mp_rank_00/model_optim_rng.pt"},
       "Megatron-LM's older format",
       "--ckpt-convert-save"},
  };
  for (const Row& row : rows) {
    const contracts::TemporaryDirectory directory;
    for (const char* file : row.files) write(fs::path(directory.path()) / "run" / file);
    SCOPED_TRACE(row.what);
    expect_named_by_every_verb(directory.path() + "/run", row.what, row.advice);
  }
}

TEST(ForeignFormatVerbs, the_iteration_that_a_tracker_names_may_be_of_another_format) {
  const contracts::TemporaryDirectory directory;
  const fs::path root = fs::path(directory.path()) / "run";
  write(root / "latest_checkpointed_iteration.txt", "5");
  write(root / "iter_0000005/mp_rank_00/model_optim_rng.pt");
  expect_named_by_every_verb(root, "Megatron-LM's older format", "iter_0000005");
}

TEST(ForeignFormatVerbs, a_single_file_is_named_by_what_it_holds) {
  const contracts::TemporaryDirectory directory;
  const fs::path root = directory.path();
  write(root / "model_world_size_2_rank_0.pt", std::string("PK\3\4\0\0", 6) + "archive/data.pkl");
  expect_named_by_every_verb(root / "model_world_size_2_rank_0.pt", "one rank's part",
                             "make one of all in their directory: reprise reshard DIR OUT");
  write(root / "c.txt", "text");
  expect_named_by_every_verb(root / "c.txt", "a checkpoint is a directory",
                             "this is a file of another kind");
  write(root / "d/.metadata");
  expect_named_by_every_verb(root / "d/.metadata", "name the directory", "/d");
}

TEST(ForeignFormatVerbs, iterations_without_a_tracker_are_named) {
  const contracts::TemporaryDirectory directory;
  const fs::path root = fs::path(directory.path()) / "run";
  for (const char* step : {"iter_0000002", "iter_0000010"}) {
    fs::create_directories(root);
    fs::copy(data("torch_2.15.0/plain"), root / step, fs::copy_options::recursive);
  }
  expect_named_by_every_verb(root, "no latest_checkpointed_iteration.txt",
                             "iter_0000010, iter_0000002; name one of them");
}

}  // namespace
}  // namespace reprise::test::foreign_format_test
