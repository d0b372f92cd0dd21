// Tests what `which` prints, and its exit codes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/damage.hpp"
#include "tests/cli/run_program.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::test::which_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::HasSubstr;

struct SavedRun {
  contracts::TemporaryDirectory directory;
  fs::path root = fs::path(directory.path()) / "run";

  SavedRun() {
    for (const char* step : {"step-5", "step-20"}) {
      fs::create_directories(root);
      fs::copy(data("torch_2.15.0/plain"), root / step, fs::copy_options::recursive);
    }
    fs::create_directories(root / "step-30");
  }
};

TEST(Which, a_script_gets_the_path_alone) {
  const SavedRun run;
  const auto result = run_program({"which", run.root.string(), "--for", "torchtitan"});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_EQ(result.out, (run.root / "step-20").string() + '\n');
  EXPECT_EQ(result.err, "");
}

TEST(Which, people_get_each_program_and_the_reasons) {
  const SavedRun run;
  const auto result = run_program({"which", run.root.string()});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(result.out, HasSubstr("torchtitan  step-20"));
  EXPECT_THAT(result.out, HasSubstr("step-30      Reprise     has no .metadata"));
  const Json json = Json::parse(run_program({"which", "--json", run.root.string()}).out);
  EXPECT_EQ(json["points"][0]["program"], "torchtitan");
  EXPECT_EQ(json["points"][0]["passed"].size(), 2U);
}

TEST(Which, a_damaged_choice_fails) {
  const SavedRun run;
  fs::remove(run.root / "step-20" / "__0_0.distcp");
  const auto result = run_program({"which", run.root.string(), "--for", "torchtitan"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("torchtitan: step-20: damaged: the file is missing"));
}

TEST(Which, nothing_to_resume_from_is_said) {
  const SavedRun run;
  fs::create_directories(run.root / "global_step_4");
  auto result = run_program({"which", run.root.string(), "--for", "verl"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("verl: there is no latest_checkpointed_iteration.txt"));
  result = run_program({"which", run.root.string(), "--for", "NeMo"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("no checkpoint has a name that NeMo gives"));
  result = run_program({"which", run.root.string(), "--for", "nobody"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--for nobody: not one of Megatron-LM, "));
}

}  // namespace
}  // namespace reprise::test::which_test
