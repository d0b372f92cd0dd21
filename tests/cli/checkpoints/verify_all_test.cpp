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

TEST(VerifyAll, a_save_that_did_not_end_decides) {
  const Victim run("mcore_0.16.1_gpt_dp2");
  std::ofstream(run.file("latest_checkpointed_iteration.txt")) << "30";
  const auto gone = run_program({"verify", "--all", run.path()});
  EXPECT_EQ(gone.exit_code, 1) << gone.all();
  EXPECT_THAT(gone.out, HasSubstr("names iter_0000030, which is not there"));
  fs::remove(run.file("latest_checkpointed_iteration.txt"));
  EXPECT_EQ(run_program({"verify", "--all", run.path()}).exit_code, 0);
  fs::rename(run.file("iter_0000010"), run.file("m--step=10-last"));
  EXPECT_EQ(run_program({"verify", "--all", run.path()}).exit_code, 0);
  std::ofstream(run.file("m--step=10-last-unfinished")) << "";
  const auto marked = run_program({"verify", "--all", run.path()});
  EXPECT_EQ(marked.exit_code, 1) << marked.all();
  EXPECT_THAT(marked.out, HasSubstr("m--step=10-last is marked as unfinished"));
}

TEST(VerifyAll, what_is_not_healthy_is_said) {
  const contracts::TemporaryDirectory directory;
  const fs::path step = fs::path(directory.path()) / "step-1";
  fs::create_directories(step);
  const std::string header = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  std::ofstream file(step / "model.safetensors", std::ios::binary);
  file << static_cast<char>(header.size()) << std::string(7, '\0') << header
       << std::string("\0\0\xc0\x7f\0\0\x80\x3f", 8);
  file.close();
  const auto result = run_program({"verify", "--all", "--health", directory.path()});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  EXPECT_THAT(result.out, HasSubstr("; w: "));
  EXPECT_THAT(result.out, HasSubstr("NaN"));
}

TEST(VerifyAll, nothing_is_inconclusive_and_a_file_is_wrong) {
  const contracts::TemporaryDirectory directory;
  EXPECT_EQ(run_program({"verify", "--all", directory.path()}).exit_code, 3);
  EXPECT_EQ(run_program({"verify", "--all", data("torch_save_2.15.0/training.pt")}).exit_code, 2);
  const auto none = run_program({"verify", "--all", directory.path() + "/none"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("it does not exist"));
}

}  // namespace
}  // namespace reprise::test::verify_all_test
