// Tests what every verb that reads checkpoints says of other forms that real packages wrote:
// safetensors, files of torch.save, also by rank; and of those that are not read.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/adapters/posix/posix_store.hpp"
#include "core/format/metadata.hpp"
#include "core/format/tensor_item.hpp"
#include "core/ports/whole_file.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/fixtures/safetensors_file.hpp"
#include "tests/program/damage.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test::formats_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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
}  // namespace reprise::test::formats_test

namespace reprise::test::torch_save_test {
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
}  // namespace reprise::test::torch_save_test

namespace reprise::test::rank_files_test {
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
}  // namespace reprise::test::rank_files_test

namespace reprise::test::universal_test {
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
}  // namespace reprise::test::universal_test
