// Tests `reprise export`: rules, what it tells, what it refuses, and that it leaves nothing behind
// when a signal ends it.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_store.hpp"
#include "core/checkpoint/tensor_reader.hpp"
#include "tests/cli/damage.hpp"
#include "tests/cli/run_program.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

const std::string kGpt = std::string(REPRISE_TEST_DATA) + "/mcore_0.16.1_gpt_tp2_pp2";

constexpr const char* kLlama = R"(set: {vocab: 18}
rules:
  - {from: 'optimizer\..*', leave_out: true}
  - {from: '(output_layer|embedding\.word_embeddings)\.weight',
     steps: [{narrow: {dim: 0, size: <vocab>}}], to: '$1.weight'}
  - {from: 'decoder\.final_layernorm\.(weight|bias)', to: model.norm.$1}
  - from: 'decoder\.layers\.self_attention\.linear_qkv\.weight'
    steps:
      - unstack: 0
      - split: {dim: 0, blocks: <groups>, shares: [<queries_per_group>, 1, 1]}
    to: ['layers.{1}.q', 'layers.{1}.k', 'layers.{1}.v']
  - {from: 'decoder\.layers\.(.*)', steps: [unstack: 0], to: 'layers.{1}.$1'}
)";

class ExportVerb : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(directory_.path() + "/" + name) << text;
    return directory_.path() + "/" + name;
  }
  ProgramResult run(const Words& options, const RunLimits& limits = {}) const {
    Words words = {"export", kGpt, out_};
    words.insert(words.end(), options.begin(), options.end());
    return run_program(words, limits);
  }
  /// Returns the bytes of a tensor.
  static Bytes elements(const std::string& path, const std::string& key) {
    PosixStore store(fs::path(path).parent_path().string());
    Checkpoint checkpoint = Checkpoint::open_any(store, fs::path(path).filename().string());
    const StoredTensor* tensor = checkpoint.catalog().tensor(key);
    if (tensor == nullptr) return {};
    Bytes staging(1U << 16U);
    HostDevice device("test", 0);
    Bytes result(static_cast<std::size_t>(volume(tensor->shape)) * size_of(tensor->dtype));
    TensorReader({checkpoint, device, staging}, *tensor)
        .read(Box::whole(tensor->shape), result.data());
    return result;
  }

  contracts::TemporaryDirectory directory_;
  std::string out_ = directory_.path() + "/out";
};

TEST_F(ExportVerb, gives_all_tensors_and_the_proof) {
  const auto result = run({});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(
      result.out,
      AllOf(HasSubstr("36 tensors, 4,368 elements, 14.22 KiB, in model.safetensors\n"),
            HasSubstr("proved: read back through the inverse of the mapping, 4,368 elements"),
            HasSubstr("left out, since safetensors has tensors alone: the common state, "
                      "decoder.")));
}

TEST_F(ExportVerb, rules_take_layers_and_queries_apart) {
  const auto rules = file("llama.yaml", kLlama);
  const auto result =
      run({"--map", rules, "--set", "groups=2", "--set", "queries_per_group=2", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.all();
  const auto told = nlohmann::json::parse(result.out);
  EXPECT_EQ(told["proved"], told["elements"]);
  EXPECT_EQ(told["lost"].size(), 24U) << "the optimizer's tensors";
  // [2 layers, 24 rows, 8] of bfloat16; a group is 6 rows of q, 3 of k, 3 of v.
  const Bytes qkv = elements(kGpt, "decoder.layers.self_attention.linear_qkv.weight");
  const auto rows = [&](int layer, int begin, int end) {
    const auto at = [&](int row) { return qkv.begin() + (layer * 24 + row) * 8 * 2; };
    return Bytes(at(begin), at(end));
  };
  for (int layer = 0; layer < 2; ++layer) {
    const auto name = [&](const char* what) {
      return "layers." + std::to_string(layer) + "." + what;
    };
    Bytes q = rows(layer, 0, 6);
    append(q, rows(layer, 12, 18));
    Bytes v = rows(layer, 9, 12);
    append(v, rows(layer, 21, 24));
    EXPECT_EQ(elements(out_, name("q")), q);
    EXPECT_EQ(elements(out_, name("v")), v);
    EXPECT_EQ(elements(out_, name("k")).size(), v.size());
  }
}

TEST_F(ExportVerb, the_rules_on_the_page_are_rules) {
  const std::string page = text_of(std::string(REPRISE_SOURCE_DIR) + "/docs/export.md");
  std::string rules;
  std::istringstream lines(page.substr(page.find("    # Megatron-Core's GPT")));
  for (std::string line; std::getline(lines, line) && line.starts_with("    ");) {
    rules += line.substr(4) + "\n";
  }
  const auto result = run({"--map", file("page.yaml", rules), "--set", "groups=2", "--set",
                           "queries_per_group=2", "--set", "vocab=17"});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(result.out, HasSubstr("21 tensors, 1,400 elements"));
  EXPECT_EQ(elements(out_, "model.layers.1.mlp.up_proj.weight").size(), 12U * 8U * 2U);
}

TEST_F(ExportVerb, joins_and_stacks_what_rules_took_apart) {
  const auto there = file("llama.yaml", kLlama);
  ASSERT_EQ(run({"--map", there, "--set", "groups=2", "--set", "queries_per_group=2"}).exit_code,
            0);
  const auto back = file("back.yaml", R"(rules:
  - from: ['layers\.(\d+)\.q', 'layers\.(\d+)\.k', 'layers\.(\d+)\.v']
    steps: [{join: {dim: 0, blocks: 2}}, {stack: {dim: 0}}]
    to: decoder.layers.self_attention.linear_qkv.weight
  - {from: '(layers)\.(\d+)\.(.*)', steps: [{stack: {dim: 0, by: 2}}], to: decoder.$1.$3}
  - {from: 'model\.norm\.(.*)', steps: [{cast: float32}], to: decoder.final_layernorm.$1}
)");
  const std::string again = directory_.path() + "/again";
  const auto result = run_program({"export", out_, again, "--map", back});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("converted: decoder.final_layernorm.bias from bfloat16 to "
                              "float32\n"),
                    HasSubstr("left out, since no rule names it: "
                              "embedding.word_embeddings.weight, output_layer.weight")));
  for (const auto* key : {"decoder.layers.self_attention.linear_qkv.weight",
                          "decoder.layers.mlp.linear_fc1.weight"}) {
    EXPECT_EQ(elements(again, key), elements(kGpt, key)) << key;
  }
}

TEST_F(ExportVerb, import_brings_back_what_export_took_apart) {
  const auto there = file("llama.yaml", kLlama);
  ASSERT_EQ(run({"--map", there, "--set", "groups=2", "--set", "queries_per_group=2"}).exit_code,
            0);
  const auto back = file("back.yaml", R"(rules:
  - from: ['layers\.(\d+)\.q', 'layers\.(\d+)\.k', 'layers\.(\d+)\.v']
    steps: [{join: {dim: 0, blocks: 2}}, {stack: {dim: 0}}]
    to: decoder.layers.self_attention.linear_qkv.weight
  - {from: 'layers\.(\d+)\.(.*)', steps: [{stack: {dim: 0}}], to: decoder.layers.$2}
  - {from: 'model\.norm\.(.*)', to: decoder.final_layernorm.$1}
  - {from: 'output_layer\.weight', steps: [{pad: {dim: 0, size: 20}}], to: output_layer.weight}
)");
  const std::string again = directory_.path() + "/again";
  const auto result = run_program({"import", out_, again, "--map", back, "--split", "layers=0:2",
                                   "--writers", "2", "--megatron"});
  ASSERT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(result.out, AllOf(HasSubstr("in __0_0.distcp, __1_0.distcp\n"), HasSubstr("proved: "),
                                HasSubstr("added: 16 zeros, as padding\n"),
                                HasSubstr("--no-load-optim --no-load-rng")));
  for (const auto* key : {"decoder.layers.self_attention.linear_qkv.weight",
                          "decoder.layers.mlp.linear_fc1.weight", "decoder.final_layernorm.bias"}) {
    EXPECT_EQ(elements(again, key), elements(kGpt, key)) << key;
    EXPECT_FALSE(elements(again, key).empty()) << key;
  }
  EXPECT_TRUE(fs::exists(again + "/metadata.json"));
  EXPECT_EQ(run_program({"verify", again}).exit_code, 0);
  EXPECT_EQ(run_program({"import", out_, again}).exit_code, 2) << "it exists";
}

TEST_F(ExportVerb, import_refuses_cuts_that_are_of_no_use) {
  const auto refused = [&](const Words& options) {
    Words words = {"import", kGpt, out_};
    words.insert(words.end(), options.begin(), options.end());
    const auto result = run_program(words);
    EXPECT_EQ(result.exit_code, 2) << result.all();
    EXPECT_FALSE(fs::exists(out_));
    return result.err;
  };
  EXPECT_THAT(refused({"--split", "nothing=0:2"}), HasSubstr("no tensor has such a key"));
  EXPECT_THAT(refused({"--writers", "70000"}), HasSubstr("more than 65536 writers"));
}

TEST_F(ExportVerb, damage_is_named_and_not_exported) {
  const Victim victim("mcore_0.16.1_gpt_tp2_pp2");
  const auto at = victim.elements_of("decoder.final_layernorm.weight");
  victim.flip("iter_0000010/" + at.file, at.offset);
  const auto result = run_program({"export", victim.path(), out_});
  EXPECT_EQ(result.exit_code, 2) << result.all();
  EXPECT_THAT(result.err, AllOf(HasSubstr("CHECKSUM"), HasSubstr("decoder.final_layernorm.weight"),
                                HasSubstr(".distcp")));
  EXPECT_FALSE(fs::exists(out_));
  EXPECT_EQ(run_program({"export", victim.path(), out_, "--no-checksums"}).exit_code, 0);
}

TEST_F(ExportVerb, says_where_a_rule_is_wrong) {
  struct Row {
    const char* rules;
    const char* says;
  };
  const std::vector<Row> rows = {
      {"rules: [{from: 'a(', to: a}]", "from 'a(' is not a valid regular expression"},
      {"rules: [{from: a}]", "'to'"},
      {"rules: [{from: a, to: b, stepps: []}]", "did you mean 'steps'?"},
      {"rules: [{from: '.*', to: same}]", "two tensors would have this key [key same]"},
      {"rules: [{from: '.*', steps: [{narrow: {dim: 0, size: <rows>}}], to: x}]",
       "give it with --set rows=VALUE"},
      {"rules: [{from: '(.*qkv.weight)', steps: [{split: {dim: 1, shares: [5, 2]}}], to: [q, k]}]",
       "7 equal shares"},
      {"rules: [{from: ['.*bias', '.*weight'], steps: [{join: {dim: 0}}], to: x}]",
       "with the same groups"},
      {"rules: [{from: ['decoder.final_layernorm.bias', 'optimizer.state.exp_avg.decoder.final_"
       "layernorm.bias'], steps: [{cast: float32}, {join: {dim: 0}}], to: x}]",
       "stored as bfloat16, while this is float32, stored as float32"},
      {"rules: [{from: '(.*)qkv.weight', to: $2}]", "'$2' names group 2, and there are only 1"},
      {"rules: [{from: '(.*qkv.weight)', steps: [{pad: {dim: 0, size: 1099511627776}}, {pad: {dim: "
       "1, size: 1099511627776}}], to: x}]",
       "would have too many elements"},
      {"rules: [{from: '(.*qkv.weight)', steps: [{unstack: 0}], to: [a, b]}]", "'to' has 2 names"},
      {"rules: [{from: ['(.*)\\.bias', '(.*)\\.weight'], steps: [{join: {dim: 0}}], to: $1}]",
       "matches no tensor that belongs to this one"},
  };
  for (const auto& row : rows) {
    const auto result = run({"--map", file("rules.yaml", row.rules)});
    EXPECT_EQ(result.exit_code, 2) << row.rules << result.all();
    EXPECT_THAT(result.err, HasSubstr(row.says)) << row.rules;
    EXPECT_FALSE(fs::exists(out_)) << row.rules;
  }
}

TEST_F(ExportVerb, refuses_values_and_numbers_of_threads_that_are_of_no_use) {
  const auto rules = file("rules.yaml", "rules: [{from: '.*', leave_out: true}]");
  EXPECT_THAT(run({"--map", rules, "--set", "vocb=1"}).err, HasSubstr("the rules have no <vocb>"));
  EXPECT_THAT(run({"--set", "vocab=1"}).err, HasSubstr("--set needs --map"));
  EXPECT_THAT(run({"--jobs", "2147483648"}).err, HasSubstr("--jobs is at most 1024"));
  EXPECT_THAT(run({"--map", rules}).err, HasSubstr("there is no tensor to export"));
}

TEST_F(ExportVerb, keeps_what_is_there_and_leaves_nothing_when_a_signal_ends_it) {
  fs::create_directory(out_);
  const auto there = run({});
  EXPECT_EQ(there.exit_code, 2);
  EXPECT_THAT(there.err,
              AllOf(HasSubstr("OUT already exists"), ::testing::Not(HasSubstr("--force"))));
  fs::remove(out_);
  if (!has_tripwires()) GTEST_SKIP() << "this kernel can't send a signal for a change";
  const auto result = run({}, {.tripwire = Tripwire{directory_.path(), DN_CREATE, SIGINT}});
  EXPECT_EQ(result.exit_code, 2) << result.all();
  EXPECT_THAT(result.err, HasSubstr("interrupted by a signal: nothing of it is left"));
  EXPECT_TRUE(fs::is_empty(directory_.path()));
}

TEST_F(ExportVerb, a_size_that_is_none_is_refused) {
  for (const auto* size : {"5 GB", "0", "-1", "GB", "1.5GB", "99999999999TB"}) {
    const auto result = run({"--max-shard", size});
    EXPECT_EQ(result.exit_code, 2) << size;
    EXPECT_THAT(result.err, HasSubstr("is no size such as 5GB")) << size;
  }
  EXPECT_EQ(run({"--max-shard", "1KiB"}).exit_code, 0);
  EXPECT_TRUE(fs::exists(out_ + "/model.safetensors.index.json"));
}

}  // namespace
}  // namespace reprise::test
