// Tests `verify --all`: each checkpoint below a directory, and from which one a job would resume.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/damage.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test::verify_all_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(VerifyAll, a_line_for_each_and_the_worst_exit_code) {
  const Victim run("mcore_0.16.1_gpt_dp2");
  fs::copy(run.file("iter_0000010"), run.file("iter_0000009"), fs::copy_options::recursive);
  const auto whole = run_program({"verify", "--all", run.path()});
  EXPECT_EQ(whole.exit_code, 0) << whole.all();
  EXPECT_THAT(whole.out, AllOf(HasSubstr("iter_0000010: whole: 36 tensors"),
                               HasSubstr("2 checkpoints below it, 2 good"),
                               HasSubstr("Megatron-LM would resume from "),
                               HasSubstr("iter_0000010, which is good"),
                               HasSubstr("latest_checkpointed_iteration.txt: a file")));
  run.truncate("iter_0000010/__0_0.distcp", 100);
  const auto damaged = run_program({"verify", "--all", run.path()});
  EXPECT_EQ(damaged.exit_code, 1) << damaged.all();
  EXPECT_THAT(damaged.out, AllOf(HasSubstr("iter_0000009: whole"), HasSubstr("1 good"),
                                 HasSubstr("iter_0000010, which is not good")));
  const Json json = Json::parse(run_program({"verify", "--all", "--json", run.path()}).out);
  EXPECT_EQ(json["checkpoints"].size(), 2U);
  EXPECT_EQ(json["roots"][0]["good"], 1);
  EXPECT_EQ(json["roots"][0]["resume"][0]["good"], false);
}

TEST(VerifyAll, the_parts_of_a_step_decide_together) {
  const contracts::TemporaryDirectory directory;
  const fs::path step = fs::path(directory.path()) / "global_step_5";
  fs::create_directories(step);
  fs::copy(data("torch_2.15.0/same_content_a"), step / "actor", fs::copy_options::recursive);
  fs::copy(data("torch_2.15.0/same_content_b"), step / "critic", fs::copy_options::recursive);
  std::ofstream(directory.path() + "/latest_checkpointed_iteration.txt") << "5";
  EXPECT_THAT(run_program({"verify", "--all", directory.path()}).out,
              HasSubstr("global_step_5, which is good"));
  fs::remove(step / "critic" / "__1_0.distcp");
  const auto result = run_program({"verify", "--all", directory.path()});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  EXPECT_THAT(result.out, HasSubstr("verl would resume from "));
  EXPECT_THAT(result.out, HasSubstr("global_step_5, which is not good"));
}

TEST(VerifyAll, nothing_is_inconclusive_and_a_file_is_wrong) {
  const contracts::TemporaryDirectory directory;
  EXPECT_EQ(run_program({"verify", "--all", directory.path()}).exit_code, 3);
  EXPECT_EQ(run_program({"verify", "--all", data("torch_save_2.15.0/training.pt")}).exit_code, 2);
  EXPECT_EQ(run_program({"verify", "--all", directory.path() + "/none"}).exit_code, 2);
}

}  // namespace
}  // namespace reprise::test::verify_all_test
