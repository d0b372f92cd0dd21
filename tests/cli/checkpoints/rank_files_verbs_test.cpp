// Tests every verb that reads checkpoints on files that ranks saved by themselves.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/damage.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test::rank_files_verbs_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kRankFiles = "rank_files_2.15.0/";
const std::string kPackage = "torch_checkpointing_0.1.1/";

Json expected_of(const std::string& folder, const std::string& name) {
  std::ifstream file(data(folder + "expected.json"));
  return Json::parse(file)["checkpoints"][name];
}

/// Several ranks may have the same part: then each is a tensor of its own.
std::string without_rank(const std::string& key) { return key.substr(0, key.find("@rank")); }

void expect_whole_tensors(const std::string& folder, const std::string& name) {
  const Json expected = expected_of(folder, name);
  const auto result = run_program({"inspect", "--json", "--sha256", data(folder + name)});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  const Json inspected = Json::parse(result.out);
  std::set<std::string> found;
  for (const Json& tensor : inspected["tensors"]) {
    const std::string key = without_rank(tensor["key"].get<std::string>());
    if (!expected.contains(key)) continue;
    found.insert(key);
    EXPECT_EQ(tensor["shape"], expected[key]["shape"]) << tensor["key"];
    EXPECT_EQ(tensor["dtype"], expected[key]["dtype"]) << tensor["key"];
    EXPECT_EQ(tensor["sha256"], expected[key]["sha256"]) << tensor["key"];
  }
  EXPECT_EQ(found.size(), expected.size()) << name;
}

TEST(RankFilesVerbs, parts_are_put_together_where_placements_say) {
  expect_whole_tensors(kRankFiles, "fsdp2");
  expect_whole_tensors(kRankFiles, "flat");
  expect_whole_tensors(kPackage, "mesh");
  expect_whole_tensors(kPackage, "version_1");
}

TEST(RankFilesVerbs, verify_reads_every_file) {
  for (const std::string& path :
       {kRankFiles + "fsdp2", kPackage + "mesh", kPackage + "version_1"}) {
    const auto result = run_program({"verify", "--strict", data(path)});
    EXPECT_EQ(result.exit_code, 0) << result.all();
    EXPECT_THAT(result.out, HasSubstr("whole: "));
  }
}

TEST(RankFilesVerbs, parts_without_placements_are_called_whole_by_nobody) {
  const auto result = run_program({"verify", data(kRankFiles + "flat")});
  EXPECT_EQ(result.exit_code, 2) << result.all();
  EXPECT_THAT(result.out, HasSubstr("such as the flat parameters of FSDP"));
  EXPECT_THAT(result.out, HasSubstr("model.flat_param"));
  EXPECT_THAT(result.out, Not(HasSubstr("/flat: whole")));
  EXPECT_THAT(run_program({"inspect", data(kRankFiles + "flat")}).out,
              HasSubstr("model.flat_param@rank1"));
}

TEST(RankFilesVerbs, reshard_makes_one_checkpoint_and_diff_finds_it_the_same) {
  for (const std::string& path : {kRankFiles + "fsdp2", kPackage + "mesh"}) {
    const contracts::TemporaryDirectory directory;
    const std::string out = directory.path() + "/out";
    const auto made =
        run_program({"reshard", data(path), out, "--ranks", "1", "--per-rank", "first"});
    ASSERT_EQ(made.exit_code, 0) << path << made.all();
    EXPECT_EQ(run_program({"verify", "--strict", out}).exit_code, 0);
    const auto model =
        run_program({"diff", "--keys", "^model", "--ignore", "@rank", data(path), out});
    EXPECT_NE(model.exit_code, 2) << model.all();
    const auto inspected = Json::parse(run_program({"inspect", "--json", "--sha256", out}).out);
    const Json expected = path == kPackage + "mesh" ? expected_of(kPackage, "mesh")
                                                    : expected_of(kRankFiles, "fsdp2");
    std::size_t found = 0;
    for (const Json& tensor : inspected["tensors"]) {
      const auto key = tensor["key"].get<std::string>();
      if (!expected.contains(key)) continue;
      ++found;
      EXPECT_EQ(tensor["sha256"], expected[key]["sha256"]) << key;
    }
    EXPECT_EQ(found, expected.size()) << path;
  }
}

TEST(RankFilesVerbs, ranks_that_keep_their_replicas_get_the_same) {
  for (const std::string& path :
       {kRankFiles + "fsdp2", kPackage + "mesh", kPackage + "version_1"}) {
    for (const std::vector<std::string>& ranks :
         {std::vector<std::string>{}, {"--ranks", "4"}, {"--writers", "3"}}) {
      const contracts::TemporaryDirectory directory;
      const std::string out = directory.path() + "/out";
      std::vector<std::string> words = {"reshard", data(path), out};
      words.insert(words.end(), ranks.begin(), ranks.end());
      const auto made = run_program(words);
      ASSERT_EQ(made.exit_code, 0) << path << made.all();
      EXPECT_THAT(made.out, HasSubstr("each of 4 ranks keeps its own values"));
      EXPECT_EQ(run_program({"verify", "--strict", out}).exit_code, 0) << path;
      const auto same = run_program({"diff", data(path), out});
      EXPECT_EQ(same.exit_code, 0) << path << same.all();
    }
  }
}

TEST(RankFilesVerbs, export_writes_equal_copies_once_and_names_others) {
  const contracts::TemporaryDirectory directory;
  const Json expected = expected_of(kRankFiles, "fsdp2");
  for (const std::string verb : {"export", "import"}) {
    const std::string out = directory.path() + "/" + verb;
    const auto made = run_program({verb, data(kRankFiles + "fsdp2"), out});
    ASSERT_EQ(made.exit_code, 0) << made.all();
    EXPECT_THAT(made.out,
                HasSubstr("ranks differ, so that each has its own: extra_state.rng@rank0"));
    const auto inspected = Json::parse(run_program({"inspect", "--json", "--sha256", out}).out);
    std::size_t found = 0;
    for (const Json& tensor : inspected["tensors"]) {
      const auto key = tensor["key"].get<std::string>();
      EXPECT_TRUE(key.find("@rank") == std::string::npos || key.starts_with("extra_state.rng"));
      if (!expected.contains(key)) continue;
      ++found;
      EXPECT_EQ(tensor["sha256"], expected[key]["sha256"]) << key;
    }
    EXPECT_EQ(found, expected.size()) << verb;
  }
}

TEST(RankFilesVerbs, diff_finds_one_changed_element_of_one_rank) {
  const Victim victim(kPackage + "mesh");
  const auto same = run_program({"diff", victim.path(), data(kPackage + "version_1")});
  EXPECT_EQ(same.exit_code, 0) << same.all();
  const auto chunks =
      Json::parse(run_program({"inspect", "--json", "--chunks", victim.path()}).out);
  for (const Json& tensor : chunks["tensors"]) {
    if (tensor["key"] != "model.w") continue;
    const Json& chunk = tensor["chunks"].back();
    victim.flip(chunk["file"].get<std::string>(), chunk["file_offset"].get<std::int64_t>());
  }
  const auto verified = run_program({"verify", victim.path()});
  EXPECT_EQ(verified.exit_code, 1) << verified.all();
  EXPECT_THAT(verified.out, HasSubstr("key model.w"));
  const auto result =
      run_program({"diff", "--no-checksums", victim.path(), data(kPackage + "version_1")});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  EXPECT_THAT(result.out, HasSubstr("1 of 30 elements"));
}

TEST(RankFilesVerbs, a_missing_rank_is_named) {
  for (const auto& [path, file, words] :
       {std::tuple(kRankFiles + "fsdp2", "model_world_size_4_rank_2.pt",
                   "model: the files of 1 of 4 ranks are missing: rank 2"),
        std::tuple(kPackage + "mesh", "model_3.pt",
                   "model: the files of 1 of 4 ranks are missing: rank 3")}) {
    const Victim victim(path);
    victim.remove(file);
    const auto result = run_program({"verify", victim.path()});
    EXPECT_EQ(result.exit_code, 1) << result.all();
    EXPECT_THAT(result.out, HasSubstr(words));
    EXPECT_THAT(result.out, HasSubstr("COVERAGE_GAP"));
    EXPECT_EQ(run_program({"diff", victim.path(), data(path)}).exit_code, 2);
    EXPECT_EQ(run_program({"reshard", victim.path(), victim.path() + "_out"}).exit_code, 2);
  }
}

TEST(RankFilesVerbs, a_rank_s_file_under_another_rank_s_name_is_found) {
  const Victim victim(kPackage + "mesh");
  fs::copy_file(victim.file("model_1.pt"), victim.file("model_0.pt"),
                fs::copy_options::overwrite_existing);
  const auto result = run_program({"verify", victim.path()});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  EXPECT_THAT(result.out, HasSubstr("metadata.pkl says that this part is"));
}

void rename(const Victim& victim, const std::string& from, const std::string& to) {
  fs::create_directories(victim.file(to).parent_path());
  fs::rename(victim.file(from), victim.file(to));
}

void exchange(const Victim& victim, const std::string& one, const std::string& other) {
  rename(victim, one, "aside");
  rename(victim, other, one);
  rename(victim, "aside", other);
}

void expect_error(const Victim& victim, const std::vector<std::string>& words) {
  const auto result = run_program({"verify", victim.path()});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  for (const std::string& text : words) EXPECT_THAT(result.out, HasSubstr(text));
  EXPECT_EQ(run_program({"reshard", victim.path(), victim.path() + "_out"}).exit_code, 2);
  EXPECT_EQ(run_program({"export", victim.path(), victim.path() + "_out"}).exit_code, 2);
}

TEST(RankFilesVerbs, parts_of_any_item_need_a_word_of_where_they_belong) {
  const Victim victim(kRankFiles + "flat");
  for (const char* rank : {"0", "1"}) {
    victim.remove(std::string("optim_world_size_2_rank_") + rank + ".pt");
    rename(victim, std::string("model_world_size_2_rank_") + rank + ".pt",
           std::string("policy_world_size_2_rank_") + rank + ".pt");
  }
  const auto result = run_program({"verify", victim.path()});
  EXPECT_EQ(result.exit_code, 2) << result.all();
  EXPECT_THAT(result.out, HasSubstr("key policy.flat_param"));
  // Random states are each rank's own.
  EXPECT_THAT(result.out, Not(HasSubstr("key extra_state.rng")));
  const auto exported = run_program({"export", victim.path(), victim.path() + "_out"});
  EXPECT_EQ(exported.exit_code, 2) << exported.all();
}

TEST(RankFilesVerbs, swapped_files_of_two_ranks_are_found) {
  const Victim victim(kRankFiles + "fsdp2");
  exchange(victim, "model_world_size_4_rank_1.pt", "model_world_size_4_rank_2.pt");
  expect_error(victim, {"the DTensors in it say that rank 2 saved them, whose file is "
                        "model_world_size_4_rank_2.pt: files were renamed or swapped",
                        "file " + victim.path() + "/model_world_size_4_rank_1.pt"});
  const auto whole = run_program({"verify", data(kRankFiles + "fsdp2")});
  EXPECT_THAT(whole.out, HasSubstr("only the names of these files say which rank wrote them, so "
                                   "that swapped ones could not be detected: those of "
                                   "extra_state"));
}

TEST(RankFilesVerbs, files_of_other_worlds_are_found) {
  const Victim beyond(kRankFiles + "flat");
  fs::copy_file(beyond.file("extra_state_world_size_2_rank_0.pt"),
                beyond.file("extra_state_world_size_2_rank_7.pt"));
  expect_error(beyond, {"a file of rank 7, but its name says that there are 2 ranks"});
  const Victim mixed(kRankFiles + "fsdp2");
  for (const char* rank : {"0", "1", "2", "3"}) {
    mixed.remove(std::string("model_world_size_4_rank_") + rank + ".pt");
  }
  for (const char* rank : {"0", "1"}) {
    const std::string file = std::string("model_world_size_2_rank_") + rank + ".pt";
    fs::copy_file(data(kRankFiles + "flat/" + file), mixed.file(file));
  }
  expect_error(mixed, {"they are of different checkpoints", "model_world_size_2_rank_0.pt",
                       "_world_size_4_rank_0.pt"});
}

TEST(RankFilesVerbs, a_rank_that_did_not_save_leaves_a_stale_file) {
  const Victim victim(kPackage + "mesh");
  fs::copy_file(victim.file("model_1.pt"), victim.file("model_7.pt"));
  const auto result = run_program({"verify", victim.path()});
  EXPECT_THAT(result.out, HasSubstr("stale: a file of rank 7, but 4 ranks saved"));
  EXPECT_EQ(run_program({"verify", "--strict", victim.path()}).exit_code, 1);
}

TEST(RankFilesVerbs, truncated_files_and_metadata_are_damage) {
  for (const char* file : {"model_2.pt", "metadata.pkl"}) {
    const Victim victim(kPackage + "mesh");
    victim.truncate(file, 700);
    const auto result = run_program({"verify", victim.path()});
    EXPECT_EQ(result.exit_code, 1) << file << result.all();
    EXPECT_THAT(result.all(), HasSubstr(file));
  }
}

TEST(RankFilesVerbs, a_flipped_bit_of_a_file_without_tensors_is_found) {
  const Victim victim(kPackage + "mesh");
  victim.flip("step_1.pt", victim.offset_of("step_1.pt", "K\x07") + 1);
  const auto result = run_program({"verify", victim.path()});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  EXPECT_THAT(result.out, HasSubstr("the pickle, which has all values"));
}

TEST(RankFilesVerbs, one_rank_s_file_alone_is_no_checkpoint) {
  const contracts::TemporaryDirectory directory;
  const std::string file = directory.path() + "/part.pt";
  fs::copy_file(data(kRankFiles + "fsdp2/model_world_size_4_rank_1.pt"), file);
  const auto result = run_program({"verify", file});
  EXPECT_EQ(result.exit_code, 2) << result.all();
  EXPECT_THAT(result.out, HasSubstr("one rank's part, "));
}

TEST(RankFilesVerbs, metadata_that_runs_code_is_refused) {
  const Victim victim(kPackage + "mesh");
  victim.write("metadata.pkl", std::string("\x80\x02"
                                           "cos\nsystem\n(X\4\0\0\0truetR.",
                                           26));
  const auto result = run_program({"verify", victim.path()});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  EXPECT_THAT(result.all(), HasSubstr("REFUSED_NAME"));
}

}  // namespace
}  // namespace reprise::test::rank_files_verbs_test
