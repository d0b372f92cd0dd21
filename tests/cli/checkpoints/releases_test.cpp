// Tests what `inspect` says of the releases that wrote and read real checkpoints, and what
// `reshard --for` writes for others. Real packages read the same in tests/interop/release_table.py.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kData = REPRISE_TEST_DATA;
const std::string kReleases = kData + "/releases_2.15.0/";

class ReleasesVerbs : public testing::Test {
 protected:
  static Json inspected(const std::string& path) {
    const auto result = run_program({"inspect", "--json", path});
    EXPECT_EQ(result.exit_code, 0) << result.all();
    return Json::parse(result.out);
  }
  static std::string who(const Json& told) {
    std::string all;
    for (const auto& one : told) all += (all.empty() ? "" : ", ") + one["who"].get<std::string>();
    return all;
  }
  ProgramResult reshard(const std::string& from, const std::vector<std::string>& options) const {
    fs::remove_all(out_);
    std::vector<std::string> words = {"reshard", "--ranks", "2", from, out_};
    words.insert(words.end(), options.begin(), options.end());
    return run_program(words);
  }
  void expect_refused(const std::string& from, const std::vector<std::string>& options,
                      const std::string& says) const {
    const auto result = reshard(from, options);
    EXPECT_EQ(result.exit_code, 2) << result.all();
    EXPECT_THAT(result.err, HasSubstr(says));
    EXPECT_FALSE(fs::exists(out_));
  }
  /// Expects that OUT is whole, has the content of `from`, and has these readers.
  void expect_written(const std::string& from, const std::string& readers) const {
    const auto same = run_program({"diff", from, out_, "--accept", "layout-bound"});
    EXPECT_EQ(same.exit_code, 0) << same.all();
    const auto whole = run_program({"verify", out_});
    EXPECT_EQ(whole.exit_code, 0) << whole.all();
    EXPECT_EQ(who(inspected(out_)["readable_by"]), readers);
  }

  contracts::TemporaryDirectory directory_;
  std::string out_ = directory_.path() + "/out";
};

struct Row {
  std::string path;
  std::string writers;
  std::string readers;
  std::string older;
};

TEST_F(ReleasesVerbs, real_checkpoints_show_their_writers_and_readers) {
  const Row rows[] = {
      {kData + "/torch_2.4.1/same_content_a", "torch <= 2.6", "torch >= 2.4", "[]"},
      {kReleases + "torch-2.7/unsigned", "torch 2.7 to 2.8", "torch >= 2.6", "[]"},
      {kData + "/torch_2.9.1/same_content_b", "torch 2.9 to 2.14", "torch >= 2.4", "[]"},
      {kReleases + "torch-2.11/ranks", "torch 2.9 to 2.14", "torch >= 2.9", R"(["torch-2.8"])"},
      {kData + "/torch_2.15.0/same_content_a", "torch >= 2.15", "torch >= 2.15",
       R"(["torch-2.14"])"},
      {kReleases + "mcore-0.8/optimizer", "torch <= 2.6, megatron-core <= 0.15",
       "torch >= 2.4, megatron-core 0.8 to 0.15", "[]"},
      {kReleases + "mcore-0.12/optimizer", "torch 2.7 to 2.8, megatron-core 0.11 to 0.15",
       "torch >= 2.4 where megatron-core is installed, megatron-core 0.8 to 0.15", "[]"},
      {kReleases + "mcore-0.15/optimizer", "torch 2.9 to 2.14, megatron-core 0.15",
       "torch >= 2.4 where megatron-core >= 0.15 is installed, megatron-core >= 0.15", "[]"},
      {kReleases + "mcore-0.18/object", "torch 2.9 to 2.14, megatron-core 0.16 to 0.18",
       "torch >= 2.4, megatron-core >= 0.8", "[]"},
      {kReleases + "mcore-0.19/optimizer", "torch >= 2.15, megatron-core >= 0.19",
       "torch >= 2.15, megatron-core >= 0.19", R"(["torch-2.14","mcore-0.18"])"},
      {kData + "/mcore_0.16.1_gpt_tp2_pp2", "torch >= 2.15, megatron-core 0.16 to 0.18",
       "torch >= 2.15, megatron-core >= 0.15", R"(["torch-2.14"])"},
      {kData + "/safetensors_0.8.0/one", "safetensors", "", "[]"},
      {kData + "/torch_save_2.15.0/training.pt", "torch", "", "[]"},
      {kData + "/torch_checkpointing_0.1.1/mesh", "torch_checkpointing", "", "[]"},
  };
  for (const Row& row : rows) {
    const Json found = inspected(row.path);
    EXPECT_EQ(who(found["written_by"]), row.writers) << row.path;
    EXPECT_EQ(who(found["readable_by"]), row.readers) << row.path;
    EXPECT_EQ(found["reshard_for"].dump(), row.older) << row.path;
  }
}

TEST_F(ReleasesVerbs, the_summary_says_why_and_what_helps) {
  const auto result = run_program({"inspect", kReleases + "mcore-0.19/optimizer"});
  EXPECT_THAT(result.out, AllOf(HasSubstr("torch >= 2.15 (its tensor properties have strides); "
                                          "megatron-core >= 0.19 (its common state is an object)"),
                                HasSubstr("`reprise reshard --for torch-2.14 --for mcore-0.18`")));
}

TEST_F(ReleasesVerbs, an_object_becomes_common_pt_for_older_megatron) {
  const std::string from = kReleases + "mcore-0.19/object";
  const auto result = reshard(from, {"--for", "mcore-0.18", "--for", "torch-2.4"});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(result.out, AllOf(HasSubstr("the common state became the file common.pt"),
                                HasSubstr("metadata.json has the four keys")));
  expect_written(from, "torch >= 2.4, megatron-core >= 0.8");
  EXPECT_THAT(text_of(out_ + "/metadata.json"), HasSubstr("\"common_backend\": \"torch\""));
  for (const auto& object : inspected(out_)["objects"]) {
    EXPECT_THAT(object["key"].get<std::string>(), Not(HasSubstr("common_state")));
  }
  EXPECT_THAT(who(inspected(out_)["written_by"]), HasSubstr("Reprise"));
}

TEST_F(ReleasesVerbs, without_for_the_object_stays_one) {
  const std::string from = kReleases + "mcore-0.19/object";
  EXPECT_EQ(reshard(from, {}).exit_code, 0);
  expect_written(from, "torch >= 2.4, megatron-core >= 0.19");
  EXPECT_EQ(reshard(from, {"--for", "mcore-0.19"}).exit_code, 0);
  expect_written(from, "torch >= 2.4, megatron-core >= 0.19");
  EXPECT_FALSE(fs::exists(out_ + "/common.pt"));
}

TEST_F(ReleasesVerbs, unknown_keys_of_metadata_json_are_left_out) {
  const std::string from = directory_.path() + "/in";
  fs::copy(kReleases + "mcore-0.18/object", from, fs::copy_options::recursive);
  std::ofstream(from + "/metadata.json")
      << R"({"sharded_backend": "torch_dist", "sharded_backend_version": 1, "colour": "red"})";
  EXPECT_EQ(who(inspected(from)["readable_by"]), "torch >= 2.4, megatron-core >= 0.19");
  EXPECT_EQ(reshard(from, {"--for", "mcore-0.17.1"}).exit_code, 0);
  EXPECT_EQ(text_of(out_ + "/metadata.json"),
            text_of(kReleases + "mcore-0.18/object/metadata.json"));
}

TEST_F(ReleasesVerbs, no_megatron_reads_what_has_no_metadata_json) {
  const std::string from = directory_.path() + "/in";
  fs::copy(kReleases + "mcore-0.19/object", from, fs::copy_options::recursive);
  fs::remove(from + "/metadata.json");
  const Json found = inspected(from);
  EXPECT_EQ(who(found["readable_by"]), "torch >= 2.15, no release of megatron-core");
  EXPECT_EQ(found["readable_by"][1]["because"].dump(), R"(["it has no metadata.json"])");
  EXPECT_EQ(who(found["written_by"]), "torch >= 2.15, megatron-core >= 0.19") << "it was lost";
  for (const std::string release : {"mcore-0.18", "mcore-0.19"}) {
    const auto result = reshard(from, {"--for", release});
    EXPECT_EQ(result.exit_code, 0) << result.all();
    EXPECT_TRUE(fs::exists(out_ + "/metadata.json")) << release;
  }
}

TEST_F(ReleasesVerbs, flattened_ranges_need_another_form_of_the_optimizer) {
  const std::string from = kData + "/optimizer_forms_0.16.1/fully_sharded_model_space";
  const Json found = inspected(from);
  EXPECT_EQ(found["reshard_optimizer"], "fully_reshardable");
  const std::string advice = "--optimizer fully_reshardable";
  EXPECT_THAT(run_program({"inspect", from}).out, HasSubstr(advice));
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{}, {"--for", "torch-2.14"}}) {
    const auto result = reshard(from, options);
    EXPECT_EQ(result.exit_code, 0) << result.all();
    EXPECT_THAT(result.out, HasSubstr(advice));
    EXPECT_THAT(who(inspected(out_)["readable_by"]), HasSubstr("no release of megatron-core"));
  }
  const auto both = reshard(from, {"--optimizer", "fully_reshardable", "--for", "mcore-0.18"});
  EXPECT_EQ(both.exit_code, 0) << both.all();
  EXPECT_THAT(who(inspected(out_)["readable_by"]), HasSubstr("megatron-core >= 0.15"));
  EXPECT_EQ(inspected(out_)["reshard_optimizer"], Json(nullptr));
}

TEST_F(ReleasesVerbs, metadata_of_each_rank_becomes_one) {
  const std::string from = kReleases + "torch-2.11/ranks";
  EXPECT_EQ(reshard(from, {"--for", "torch-2.8"}).exit_code, 0);
  EXPECT_TRUE(fs::exists(out_ + "/.metadata"));
  expect_written(from, "torch >= 2.4");
  const std::string differing = kData + "/torch_2.15.0/nocollectives";
  expect_refused(differing, {"--for", "torch-2.8"}, "give --per-rank first");
  EXPECT_EQ(reshard(differing, {"--for", "torch-2.8", "--per-rank", "first"}).exit_code, 0);
  EXPECT_EQ(who(inspected(out_)["readable_by"]), "torch >= 2.4");
}

TEST_F(ReleasesVerbs, what_a_release_lacks_is_refused_by_name) {
  const std::string unsigned_ones = kReleases + "torch-2.7/unsigned";
  expect_refused(unsigned_ones, {"--for", "torch-2.5"},
                 "torch-2.5 can't read this: it has elements of uint16, uint32 or uint64, which "
                 "torch >= 2.6 reads");
  expect_refused(unsigned_ones, {"--for", "torch-2.5", "--json"}, "uint16");
  EXPECT_EQ(reshard(unsigned_ones, {"--for", "torch-2.6"}).exit_code, 0);
  expect_refused(kReleases + "mcore-0.19/optimizer", {"--for", "mcore-0.14"},
                 "its optimizer state has the form fully_reshardable, which megatron-core >= 0.15 "
                 "reads");
  expect_refused(kReleases + "mcore-0.12/optimizer", {"--for", "mcore-0.18"},
                 "stored as flattened ranges");
  expect_refused(kData + "/mcore_0.16.1_gpt_tp2_pp2", {"--for", "mcore-0.8"},
                 "its arguments name AttnBackend, which megatron-core >= 0.11 reads");
  expect_refused(kData + "/torch_2.15.0/same_content_a", {"--for", "mcore-0.18"},
                 "neither its metadata.json nor its common state");
}

TEST_F(ReleasesVerbs, a_damaged_common_state_has_no_readers) {
  const std::string from = directory_.path() + "/in";
  fs::copy(kReleases + "mcore-0.19/object", from, fs::copy_options::recursive);
  std::string payload = text_of(from + "/__0_0.distcp");
  payload.at(payload.rfind("iteration") + 2) = '\xff';
  std::ofstream(from + "/__0_0.distcp", std::ios::binary) << payload;
  const auto result = run_program({"inspect", "--json", from});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(who(Json::parse(result.out)["readable_by"]),
            "torch >= 2.15, no release of megatron-core");
  expect_refused(from, {"--for", "mcore-0.18"}, "IN is not whole");
}

TEST_F(ReleasesVerbs, usage_names_the_releases) {
  const std::string from = kData + "/torch_2.15.0/same_content_a";
  for (const std::string name : {"torch-2.16", "torch", "mcore-0.7", "pytorch-2.4", ""}) {
    expect_refused(from, {"--for", name}, "torch-2.4 to torch-2.15 and mcore-0.8 to mcore-0.19");
  }
  expect_refused(from, {"--for", "torch-2.14", "--keep-strides"},
                 "torch-2.14 can't read strides in .metadata, and --keep-strides keeps them");
  EXPECT_EQ(reshard(from, {"--for", "torch-2.15", "--keep-strides"}).exit_code, 0);
}

}  // namespace
}  // namespace reprise::test
