// Tests every verb that reads checkpoints on safetensors that real packages wrote.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/contracts/temporary_directory.hpp"
#include "tests/fixtures/safetensors_file.hpp"
#include "tests/program/damage.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test::safetensors_verbs_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

std::string fixture(const std::string& name) { return data("safetensors_0.8.0/" + name); }

/// Returns dtype, shape and digest of each tensor.
Json described(const std::string& path) {
  const auto result = run_program({"inspect", "--json", "--sha256", path});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  const Json inspected = Json::parse(result.out);
  Json found = Json::object();
  for (const Json& tensor : inspected["tensors"]) {
    found[tensor["key"].get<std::string>()] = {
        {"dtype", tensor["dtype"]}, {"shape", tensor["shape"]}, {"sha256", tensor["sha256"]}};
  }
  return found;
}

TEST(SafetensorsVerbs, inspect_finds_what_was_passed_to_the_writers) {
  std::ifstream file(fixture("expected.json"));
  const Json checkpoints = Json::parse(file)["checkpoints"];
  EXPECT_EQ(checkpoints.size(), 10U);
  for (const auto& [name, expected] : checkpoints.items()) {
    Json found = described(fixture(name));
    // torch 2.15 puts zeros where a tensor has no dimensions.
    if (name == "consolidated") found["scale"] = expected["scale"];
    EXPECT_EQ(found, expected) << name;
  }
}

TEST(SafetensorsVerbs, inspect_says_what_they_are) {
  const auto said = [](const std::string& name) {
    return run_program({"inspect", fixture(name)}).all();
  };
  EXPECT_THAT(said("one"), HasSubstr("kind      safetensors\n"));
  EXPECT_THAT(said("adapter"), HasSubstr("an adapter's safetensors, without its model"));
  EXPECT_THAT(said("pieces"), HasSubstr("safetensors with pieces of tensors"));
  EXPECT_THAT(said("within"), HasSubstr("SerializationFormat.SAFETENSORS"));
}

TEST(SafetensorsVerbs, verify_says_what_it_can_not_see) {
  for (const char* name : {"one", "one/model.safetensors", "transformers_shards", "within"}) {
    const auto result = run_program({"verify", fixture(name)});
    EXPECT_EQ(result.exit_code, 0) << result.all();
    EXPECT_THAT(result.out, HasSubstr("whole: "));
    EXPECT_THAT(result.out, HasSubstr("safetensors has no checksums: all bytes were read, but "
                                      "changed values can't be detected"));
  }
  EXPECT_THAT(run_program({"verify", fixture("torch_dist")}).out, Not(HasSubstr("no checksums")));
}

TEST(SafetensorsVerbs, diff_finds_the_same_tensors_in_each_format) {
  const std::string torch_dist = fixture("torch_dist");
  for (const char* name : {"one", "one/model.safetensors", "pieces", "one_rank"}) {
    for (const auto& words : std::vector<std::vector<std::string>>{
             {"diff", fixture(name), torch_dist}, {"diff", torch_dist, fixture(name)}}) {
      const auto result = run_program(words);
      EXPECT_EQ(result.exit_code, 0) << name << result.all();
      EXPECT_THAT(result.out, HasSubstr("same: 98 elements (552 B) of 6 tensors"));
      EXPECT_THAT(result.out, HasSubstr("A and B have different formats"));
    }
  }
  const auto within = run_program({"diff", "--ignore", "^step$", fixture("within"), torch_dist});
  EXPECT_EQ(within.exit_code, 0) << within.all();
  EXPECT_EQ(
      run_program({"diff", "--rename", "s/^layers/blocks/", fixture("one"), torch_dist}).exit_code,
      1);
}

TEST(SafetensorsVerbs, diff_finds_the_zeros_that_torch_put_in_place_of_a_scalar) {
  const auto result =
      run_program({"diff", fixture("consolidated"), fixture("consolidated/sharded")});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  EXPECT_THAT(result.out, HasSubstr("scale   different  1 of 1 elements, max_delta 0.5"));
  EXPECT_THAT(result.out, HasSubstr("different: 1 differ"));
}

TEST(SafetensorsVerbs, diff_finds_one_changed_bit_of_a_value) {
  const Victim victim("safetensors_0.8.0/one");
  victim.flip("model.safetensors", -1);
  const auto result = run_program({"diff", victim.path(), fixture("torch_dist")});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  EXPECT_THAT(result.out, HasSubstr("layers.0.bias  different  1 of 6 elements"));
}

TEST(SafetensorsVerbs, reshard_makes_a_checkpoint_of_each) {
  for (const char* name : {"one", "one/model.safetensors", "dtypes", "transformers_shards",
                           "adapter", "pieces", "one_rank", "within"}) {
    const contracts::TemporaryDirectory directory;
    const std::string out = directory.path() + "/out";
    const auto made = run_program({"reshard", fixture(name), out, "--ranks", "2"});
    ASSERT_EQ(made.exit_code, 0) << name << made.all();
    EXPECT_TRUE(fs::exists(out + "/.metadata"));
    EXPECT_EQ(run_program({"verify", "--strict", out}).exit_code, 0) << name;
    const auto same = run_program({"diff", fixture(name), out});
    EXPECT_EQ(same.exit_code, 0) << name << same.all();
    EXPECT_EQ(fs::exists(out + "/config.json"), std::string(name) == "transformers_shards");
    for (const auto& entry : fs::directory_iterator(out)) {
      EXPECT_FALSE(entry.path().string().find("safetensors") != std::string::npos) << entry.path();
    }
  }
}

TEST(SafetensorsVerbs, what_contradicts_itself_is_read_by_no_verb) {
  const Victim victim("safetensors_0.8.0/transformers_shards");
  victim.remove("model-00002-of-00003.safetensors");
  const std::string words = "the file is missing, but the index says that it has this tensor";
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"inspect", victim.path()},
           {"inspect", "--sha256", victim.path()},
           {"diff", victim.path(), fixture("transformers_shards")},
           {"diff", fixture("transformers_shards"), victim.path()},
           {"reshard", victim.path(), victim.path() + "_out"}}) {
    const auto result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.all();
    EXPECT_THAT(result.err, HasSubstr(words)) << arguments[0];
  }
  EXPECT_FALSE(fs::exists(victim.path() + "_out"));
  EXPECT_EQ(run_program({"verify", victim.path()}).exit_code, 1);
}

TEST(SafetensorsVerbs, one_rank_s_pieces_are_no_checkpoint) {
  const std::string piece = fixture("pieces/shard-00001-model-00001-of-00001.safetensors");
  const contracts::TemporaryDirectory directory;
  EXPECT_EQ(run_program({"verify", piece}).exit_code, 2);
  const auto made = run_program({"reshard", piece, directory.path() + "/out"});
  EXPECT_EQ(made.exit_code, 2);
  EXPECT_THAT(made.err, HasSubstr("name the directory"));
}

TEST(SafetensorsVerbs, directories_with_safetensors_are_named) {
  const auto result = run_program({"verify", data("safetensors_0.8.0/consolidated/..")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("it contains these checkpoints: within, torch_dist"));
}

TEST(SafetensorsVerbs, two_gigabytes_are_verified_in_little_memory) {
  const contracts::TemporaryDirectory directory;
  const fs::path file = fs::path(directory.path()) / "model.safetensors";
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 30U;
  const std::string header = "{" + safetensors_entry("a", "BF16", "536870912", 0, kHalf) + "," +
                             safetensors_entry("b", "F32", "268435456", kHalf, 2 * kHalf) + "}";
  std::ofstream(file, std::ios::binary) << safetensors_file(header, 0);
  fs::resize_file(file, 8 + header.size() + 2 * kHalf);  // without blocks on the disk
  const auto result = run_program({"verify", file});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_LT(result.peak_rss_bytes, std::uint64_t{64} << 20U);
}

TEST(SafetensorsVerbs, claims_of_a_header_cost_no_memory) {
  const contracts::TemporaryDirectory directory;
  const std::string file = directory.path() + "/model.safetensors";
  for (const std::string& content :
       {std::string(8, '\x7f'), std::string("\xff\xe0\xf5\x05\0\0\0\0{}", 10),
        safetensors_file("{" + safetensors_entry("a", "F64", "4611686018427387904", 0, 8) + "}", 8),
        safetensors_file(
            "{" + safetensors_entry("a", "U8", "4611686018427387000", 0, 4611686018427387000U) +
                "}",
            8)}) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
    for (const char* verb : {"verify", "inspect"}) {
      const auto result = run_program({verb, file});
      EXPECT_GT(result.exit_code, 0) << result.all();
      EXPECT_LT(result.peak_rss_bytes, std::uint64_t{64} << 20U);
    }
  }
}

}  // namespace
}  // namespace reprise::test::safetensors_verbs_test
