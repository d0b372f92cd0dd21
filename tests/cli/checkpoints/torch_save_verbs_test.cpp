// Tests every verb that reads checkpoints on files of torch.save.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/format/tensor_item.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/damage.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test::torch_save_verbs_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::HasSubstr;

std::string fixture(const std::string& name) { return data("torch_save_2.15.0/" + name); }

Json expected_files() {
  std::ifstream file(fixture("expected.json"));
  return Json::parse(file)["files"];
}

/// Values of which DCP's flatten_state_dict, and so the list of expected ones, knows nothing.
bool is_dropped_by_dcp(const std::string& key) {
  return key == "nothing" || key.ends_with("_metadata");
}

TEST(TorchSaveVerbs, inspect_finds_what_torch_load_does) {
  const Json files = expected_files();
  EXPECT_EQ(files.size(), 9U);
  for (const auto& [name, expected] : files.items()) {
    const auto result = run_program({"inspect", "--json", "--sha256", fixture(name)});
    // One value of names.pt has no name.
    EXPECT_EQ(result.exit_code, 0) << result.all();
    const Json inspected = Json::parse(result.out);
    Json tensors = Json::object();
    for (const Json& tensor : inspected["tensors"]) {
      tensors[tensor["key"].get<std::string>()] = {
          {"dtype", tensor["dtype"]}, {"shape", tensor["shape"]}, {"sha256", tensor["sha256"]}};
    }
    EXPECT_EQ(tensors, expected["tensors"]) << name;
    Json objects = Json::array();
    for (const Json& object : inspected["objects"]) {
      const auto key = object["key"].get<std::string>();
      if (!is_dropped_by_dcp(key)) objects.push_back(key);
    }
    EXPECT_EQ(objects, expected["objects"]) << name;
  }
}

TEST(TorchSaveVerbs, verify_reads_all_and_says_what_is_shared) {
  const Json files = expected_files();
  for (const auto& [name, expected] : files.items()) {
    const auto result = run_program({"verify", fixture(name)});
    EXPECT_EQ(result.exit_code, 0) << name << result.all();
    EXPECT_THAT(result.out, HasSubstr("whole: "));
  }
  EXPECT_THAT(run_program({"verify", fixture("tied.bin")}).out,
              HasSubstr("tied, as it has the same elements: head.weight [key embed.weight"));
  EXPECT_THAT(run_program({"verify", fixture("views.pt")}).out,
              HasSubstr("it shares the memory of its storage with "));
  EXPECT_THAT(run_program({"verify", fixture("training.pt")}).out,
              HasSubstr("opaque, kept as bytes: it names string.Template"));
  EXPECT_THAT(run_program({"verify", fixture("without_checksums.pt")}).out,
              HasSubstr("the writer had checksums switched off"));
}

TEST(TorchSaveVerbs, what_has_no_name_or_is_no_value_is_told_with_its_key) {
  const auto same = run_program({"verify", fixture("same_names.pt")});
  EXPECT_EQ(same.exit_code, 2) << same.all();
  EXPECT_THAT(same.out, HasSubstr("two values have this name"));
  const auto result = run_program({"verify", fixture("not_read.pt")});
  EXPECT_EQ(result.exit_code, 2) << result.all();
  for (const char* words : {"[key module", "[key sparse", "[key dict", "has no name"}) {
    EXPECT_THAT(result.out, HasSubstr(words));
  }
  EXPECT_EQ(run_program({"reshard", fixture("not_read.pt"), "unused"}).exit_code, 2);
}

TEST(TorchSaveVerbs, other_forms_are_named_with_what_converts_them) {
  const auto before = run_program({"verify", fixture("before_1_6.pt")});
  EXPECT_EQ(before.exit_code, 2);
  EXPECT_THAT(before.all(), HasSubstr("before torch 1.6, which is no archive"));
  const auto script = run_program({"verify", fixture("script.ts")});
  EXPECT_EQ(script.exit_code, 2);
  EXPECT_THAT(script.all(), HasSubstr("torch.jit.load(FILE).state_dict()"));
}

TEST(TorchSaveVerbs, reshard_makes_a_checkpoint_with_the_same_content) {
  for (const char* name : {"training.pt", "views.pt", "dtypes.pth", "tied.bin", "shards"}) {
    const contracts::TemporaryDirectory directory;
    const std::string out = directory.path() + "/out";
    const auto made = run_program({"reshard", fixture(name), out, "--ranks", "2"});
    ASSERT_EQ(made.exit_code, 0) << name << made.all();
    const auto verified = run_program({"verify", "--strict", out});
    EXPECT_EQ(verified.exit_code, 0) << name << verified.all();
    const auto same = run_program({"diff", fixture(name), out});
    EXPECT_EQ(same.exit_code, 0) << name << same.all();
  }
}

TEST(TorchSaveVerbs, export_writes_the_tensors_of_a_file) {
  const contracts::TemporaryDirectory directory;
  const std::string out = directory.path() + "/out";
  const auto made = run_program({"export", fixture("training.pt"), out});
  ASSERT_EQ(made.exit_code, 0) << made.all();
  const auto same = run_program({"diff", "--keys", "^(model|optimizer)", "--ignore",
                                 "metadata|param_groups", out, fixture("training.pt")});
  EXPECT_EQ(same.exit_code, 0) << same.all();
}

TEST(TorchSaveVerbs, diff_finds_one_changed_object) {
  const auto same = run_program({"diff", fixture("training.pt"), fixture("training.pt")});
  EXPECT_EQ(same.exit_code, 0) << same.all();
  const auto result = run_program({"diff", fixture("training.pt"), fixture("later.pt")});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  EXPECT_THAT(result.out, HasSubstr("epoch: different"));
  EXPECT_THAT(result.out, HasSubstr("different: 1 differ"));
}

/// Returns where the elements of a tensor begin in the file.
std::int64_t elements_of(const std::string& file, const std::string& key) {
  const auto result = run_program({"inspect", "--json", "--chunks", file});
  const Json inspected = Json::parse(result.out);
  for (const Json& tensor : inspected["tensors"]) {
    if (tensor["key"] == key) return tensor["chunks"][0]["file_offset"].get<std::int64_t>();
  }
  ADD_FAILURE() << key;
  return 0;
}

TEST(TorchSaveVerbs, a_flipped_bit_of_an_element_is_found_by_every_verb) {
  const Victim victim("torch_save_2.15.0");
  const std::string file = victim.path() + "/training.pt";
  victim.flip("training.pt", elements_of(file, "model.0.weight"));
  const auto verified = run_program({"verify", file});
  EXPECT_EQ(verified.exit_code, 1) << verified.all();
  EXPECT_THAT(verified.out, HasSubstr("CHECKSUM"));
  EXPECT_THAT(verified.out, HasSubstr("key model.0.weight"));
  EXPECT_NE(run_program({"diff", file, fixture("training.pt")}).exit_code, 0);
  const std::string out = victim.path() + "_out";
  const auto resharded = run_program({"reshard", file, out});
  EXPECT_NE(resharded.exit_code, 0);
  EXPECT_THAT(resharded.all(), HasSubstr("checksum"));
  EXPECT_NE(run_program({"export", file, out}).exit_code, 0);
  EXPECT_FALSE(fs::exists(out));
}

TEST(TorchSaveVerbs, a_file_that_is_no_archive_is_damaged_by_its_name) {
  const Victim victim("torch_save_2.15.0");
  victim.flip("training.pt", 0);
  const auto result = run_program({"verify", victim.path() + "/training.pt"});
  EXPECT_EQ(result.exit_code, 1) << result.all();
}

TEST(TorchSaveVerbs, flipped_bits_of_the_pickle_are_found) {
  const Victim victim("torch_save_2.15.0");
  victim.flip("training.pt", victim.offset_of("training.pt", "exp_avgq"));
  const std::string file = victim.path() + "/training.pt";
  const auto result = run_program({"verify", file});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  EXPECT_THAT(result.out, HasSubstr("the pickle, which has all values"));
  EXPECT_EQ(run_program({"diff", file, fixture("training.pt")}).exit_code, 2);
  EXPECT_EQ(run_program({"reshard", file, victim.path() + "_out"}).exit_code, 2);
}

TEST(TorchSaveVerbs, truncated_at_any_byte_is_damage) {
  const Victim victim("torch_save_2.15.0");
  const auto size = static_cast<std::int64_t>(fs::file_size(fixture("tied.bin")));
  for (std::int64_t keep = size - 1; keep > 600; keep -= 97) {
    victim.truncate("tied.bin", static_cast<std::uint64_t>(keep));
    const auto result = run_program({"verify", victim.path() + "/tied.bin"});
    EXPECT_EQ(result.exit_code, 1) << keep << result.all();
    EXPECT_THAT(result.all(), HasSubstr("tied.bin"));
  }
}

TEST(TorchSaveVerbs, a_missing_shard_is_named) {
  const Victim victim("torch_save_2.15.0/shards");
  victim.remove("pytorch_model-00002-of-00003.bin");
  for (const bool with_index : {true, false}) {
    if (!with_index) victim.remove("pytorch_model.bin.index.json");
    const auto result = run_program({"verify", victim.path()});
    EXPECT_EQ(result.exit_code, 1) << result.all();
    EXPECT_THAT(result.out, HasSubstr(with_index ? "pytorch_model-00002-of-00003.bin"
                                                 : "shards are missing, such as number 2"));
    EXPECT_EQ(run_program({"diff", victim.path(), fixture("shards")}).exit_code, 2);
  }
}

TEST(TorchSaveVerbs, two_gigabytes_are_read_in_little_memory) {
  const contracts::TemporaryDirectory directory;
  const std::string file = directory.path() + "/large.pt";
  const TensorItemLayout layout(DType::kFloat32, {std::int64_t{1} << 19U, std::int64_t{1} << 10U});
  const auto write = [&file](std::uint64_t at, ByteSpan bytes) {
    std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(static_cast<std::streamoff>(at));
    out << as_text(bytes);
  };
  std::ofstream(file, std::ios::binary) << as_text(layout.head());
  fs::resize_file(file, layout.length());  // without blocks on the disk
  write(layout.data_offset() + layout.data_bytes(), layout.tail(0));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"verify", file}, {"diff", file, file}}) {
    const auto result = run_program(words);
    EXPECT_EQ(result.exit_code, 0) << result.all();
    EXPECT_LT(result.peak_rss_bytes, std::uint64_t{200} << 20U) << words.front();
  }
}

}  // namespace
}  // namespace reprise::test::torch_save_verbs_test
