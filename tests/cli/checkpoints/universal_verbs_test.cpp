// Tests every verb that reads checkpoints on universal checkpoints of DeepSpeed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/adapters/posix/posix_store.hpp"
#include "core/format/metadata.hpp"
#include "core/ports/whole_file.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/damage.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test::universal_verbs_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::HasSubstr;

const std::string kUniversal = "deepspeed_0.19.8/universal";

TEST(UniversalVerbs, inspect_finds_what_torch_load_does) {
  std::ifstream file(data("deepspeed_0.19.8/expected.json"));
  const Json expected = Json::parse(file)["tensors"];
  const auto result = run_program({"inspect", "--json", "--sha256", data(kUniversal)});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  const Json inspected = Json::parse(result.out);
  EXPECT_EQ(inspected["kind"], "DeepSpeed universal");
  Json found = Json::object();
  for (const Json& tensor : inspected["tensors"]) {
    found[tensor["key"].get<std::string>()] = {
        {"dtype", tensor["dtype"]}, {"shape", tensor["shape"]}, {"sha256", tensor["sha256"]}};
  }
  EXPECT_EQ(found, expected);
}

TEST(UniversalVerbs, verify_and_diff_read_all_files) {
  const auto verified = run_program({"verify", "--strict", data(kUniversal)});
  EXPECT_EQ(verified.exit_code, 0) << verified.all();
  const Victim victim(kUniversal);
  EXPECT_EQ(run_program({"diff", victim.path(), data(kUniversal)}).exit_code, 0);
  const contracts::TemporaryDirectory directory;
  const std::string out = directory.path() + "/out";
  ASSERT_EQ(run_program({"reshard", data(kUniversal), out}).exit_code, 0);
  const auto same = run_program({"diff", data(kUniversal), out});
  EXPECT_EQ(same.exit_code, 0) << same.all();
  victim.flip("zero/0.weight/fp32.pt", victim.offset_of("zero/0.weight/fp32.pt", "FB") + 100);
  EXPECT_EQ(run_program({"verify", victim.path()}).exit_code, 1);
}

TEST(UniversalVerbs, what_is_missing_is_named) {
  struct Row {
    std::vector<const char*> removed;
    const char* words;
  };
  const std::vector<Row> rows = {
      {{"zero/0.weight/fp32.pt"}, "key 0.weight.fp32"},
      {{"zero/0.weight/exp_avg_sq.pt"}, "key 0.weight.exp_avg_sq"},
      {{"zero/2.bias/fp32.pt", "zero/2.bias/exp_avg.pt", "zero/2.bias/exp_avg_sq.pt",
        "zero/2.bias/step.pt"},
       "key 2.bias"},
  };
  for (const Row& row : rows) {
    const Victim victim(kUniversal);
    for (const char* file : row.removed) victim.remove(file);
    if (row.removed.size() > 1) fs::remove(victim.file("zero/2.bias"));
    const auto result = run_program({"verify", victim.path()});
    EXPECT_EQ(result.exit_code, 1) << result.all();
    EXPECT_THAT(result.out, HasSubstr("COVERAGE_GAP"));
    EXPECT_THAT(result.out, HasSubstr(row.words));
  }
  const Victim victim(kUniversal);
  victim.truncate("zero/1.bias/exp_avg.pt", 900);
  const auto result = run_program({"verify", victim.path()});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  EXPECT_THAT(result.all(), HasSubstr("zero/1.bias/exp_avg.pt"));
}

TEST(UniversalVerbs, shapes_that_contradict_each_other_are_found) {
  const auto expect = [](const Victim& victim, const std::string& words) {
    const auto result = run_program({"verify", victim.path()});
    EXPECT_EQ(result.exit_code, 1) << result.all();
    EXPECT_THAT(result.out, HasSubstr(words));
    EXPECT_EQ(run_program({"reshard", victim.path(), victim.path() + "_out"}).exit_code, 2);
  };
  const Victim state(kUniversal);
  fs::copy_file(state.file("zero/2.bias/exp_avg.pt"), state.file("zero/1.bias/exp_avg.pt"),
                fs::copy_options::overwrite_existing);
  expect(state, "a state of shape [2], but the parameter's fp32.pt has shape [4]");
  const Victim swapped(kUniversal);
  fs::rename(swapped.file("zero/0.weight"), swapped.file("aside"));
  fs::rename(swapped.file("zero/2.weight"), swapped.file("zero/0.weight"));
  fs::rename(swapped.file("aside"), swapped.file("zero/2.weight"));
  expect(swapped,
         "fp32.pt has shape [2, 4], but param_shapes of 1 file "
         "mp_rank_*_model_states.pt says [4, 6]");
  const Victim alone(kUniversal);
  alone.remove("mp_rank_00_model_states.pt");
  expect(alone, "no file mp_rank_*_model_states.pt");
  const Victim one_of_two(kUniversal);
  fs::rename(one_of_two.file("mp_rank_00_model_states.pt"),
             one_of_two.file("mp_rank_01_model_states.pt"));
  expect(one_of_two, "of 1 of 2 model ranks: mp_rank_*_model_states.pt");
  const Victim lost(kUniversal);
  fs::remove_all(lost.file("zero/2.bias"));
  expect(lost, "the model has this parameter, but zero/ has no directory of it");
}

TEST(UniversalVerbs, what_nothing_says_is_a_note) {
  const Victim victim(kUniversal);
  const auto before = run_program({"verify", victim.path()});
  EXPECT_THAT(before.out, HasSubstr("two of the same shape that were swapped could not be"));
  fs::copy(victim.file("zero/1.bias"), victim.file("zero/9.bias"));
  const auto result = run_program({"verify", victim.path()});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(result.out, HasSubstr("names 1 parameter of zero/, so nothing says if they belong"));
}

TEST(UniversalVerbs, reshard_writes_one_metadata_that_names_each_value_once) {
  const contracts::TemporaryDirectory directory;
  const std::string out = directory.path() + "/out";
  const auto made = run_program({"reshard", data(kUniversal), out});
  ASSERT_EQ(made.exit_code, 0) << made.all();
  EXPECT_TRUE(fs::exists(out + "/.metadata"));
  EXPECT_FALSE(fs::exists(out + "/zero"));
  EXPECT_THAT(made.out, ::testing::Not(HasSubstr("copied along")));
  // A path that is the beginning of another can't be put into one dict.
  PosixStore store(out);
  const std::vector<Bytes> bytes = {read_all(store, ".metadata", std::uint64_t{1} << 30U)};
  const std::vector<ByteSpan> files = {bytes.front()};
  const std::vector<std::string> names = {".metadata"};
  const Metadata metadata = read_metadata(files, names);
  std::set<KeyPath> paths;
  for (const PlannerEntry& entry : metadata.planner_data) paths.insert(entry.path);
  EXPECT_TRUE(paths.contains(KeyPath{"0.weight.fp32"}));
  EXPECT_TRUE(paths.contains(KeyPath{"0.weight.fp32.cat_dim"}));
  for (KeyPath path : paths) {
    for (path.pop_back(); !path.empty(); path.pop_back()) EXPECT_FALSE(paths.contains(path));
  }
}

}  // namespace
}  // namespace reprise::test::universal_verbs_test
