// Tests `reprise export`: rules, what it tells, what it refuses, and that it leaves nothing behind
// when a signal ends it. Then what rules may ask of a checkpoint, and the maps that come with the
// program.

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
#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/damage.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;
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
  std::istringstream lines(page.substr(page.find("    # Megatron-Core's attention")));
  for (std::string line; std::getline(lines, line) && line.starts_with("    ");) {
    rules += line.substr(4) + "\n";
  }
  const std::string source = std::string(REPRISE_TEST_DATA) + "/mcore_0.16.1_llama";
  const auto result =
      run_program({"export", source, out_, "--map", file("page.yaml", rules), "--set", "vocab=17"});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(result.out, HasSubstr("7 tensors, 4,640 elements"));
  EXPECT_EQ(elements(out_, "model.layers.1.self_attn.k_proj.weight").size(), 16U * 32U * 4U);
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

TEST_F(ExportVerb, one_file_of_torch_save_has_what_the_checkpoint_has) {
  const std::string file = directory_.path() + "/model.pt";
  const Words words = {"export", kGpt, file, "--to", "torch"};
  const auto result = run_program(words);
  ASSERT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(result.out, AllOf(HasSubstr("36 tensors, 4,368 elements, 14.22 KiB, in model.pt\n"),
                                HasSubstr("proved: read back"),
                                HasSubstr("left out, since export takes tensors alone: ")));
  for (const auto* key : {"decoder.layers.self_attention.linear_qkv.weight",
                          "optimizer.state.exp_avg.decoder.final_layernorm.bias"}) {
    EXPECT_EQ(elements(file, key), elements(kGpt, key)) << key;
    EXPECT_FALSE(elements(file, key).empty()) << key;
  }
  EXPECT_EQ(run_program({"verify", file}).exit_code, 0);
  EXPECT_THAT(run_program(words).err, HasSubstr("OUT already exists"));
  fs::remove(file);
  EXPECT_THAT(run_program({"export", kGpt, file, "--to", "torch", "--max-shard", "1GB"}).err,
              HasSubstr("--max-shard is for safetensors"));
  EXPECT_THAT(run_program({"export", kGpt, file, "--to", "torch_dist"}).err,
              HasSubstr("'reprise import' writes a torch_dist checkpoint"));
  EXPECT_TRUE(fs::is_empty(directory_.path()));
  if (!has_tripwires()) GTEST_SKIP() << "this kernel can't send a signal for a change";
  const auto ended =
      run_program(words, {.tripwire = Tripwire{directory_.path(), DN_CREATE, SIGINT}});
  EXPECT_EQ(ended.exit_code, 2) << ended.all();
  EXPECT_THAT(ended.err, HasSubstr("interrupted by a signal: nothing of it is left"));
  EXPECT_TRUE(fs::is_empty(directory_.path()));
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

TEST_F(ExportVerb, takes_along_what_safetensors_say_of_themselves) {
  const std::string header = R"({"__metadata__":{"format":"mlx","made_by":"me","DCP_VERSION":"1"},)"
                             R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  const std::string source =
      file("in.safetensors",
           std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') + header + "x");
  ASSERT_EQ(run_program({"export", source, out_}).exit_code, 0);
  EXPECT_THAT(text_of(out_ + "/model.safetensors"),
              HasSubstr(R"({"__metadata__":{"format":"mlx","made_by":"me"},"a":{"dtype":)"));
  fs::remove_all(out_);
  const auto rules = file("rules.yaml", "rules: [{from: a, to: b}]");
  ASSERT_EQ(run_program({"export", source, out_, "--map", rules}).exit_code, 0);
  EXPECT_THAT(text_of(out_ + "/model.safetensors"),
              HasSubstr(R"({"__metadata__":{"format":"mlx"},"b":{"dtype":)"));
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
  EXPECT_THAT(run({"--jobs", "2147483648"}).err, HasSubstr("is not a whole number from 1 to 1024"));
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
  for (const auto* size :
       {"5 GB", "0", "-1", "GB", "1.5.5GB", "0.5", "nan", "inf", "99999999999TB"}) {
    const auto result = run({"--max-shard", size});
    EXPECT_EQ(result.exit_code, 2) << size;
    EXPECT_THAT(result.err, HasSubstr("is not a size, such as 5GB")) << size;
  }
  EXPECT_EQ(run({"--max-shard", "1KiB"}).exit_code, 0);
  EXPECT_TRUE(fs::exists(out_ + "/model.safetensors.index.json"));
}

const std::string kLlamaCkpt = std::string(REPRISE_TEST_DATA) + "/mcore_0.16.1_llama";

class Maps : public testing::Test {
 protected:
  std::string file(const std::string& text) const {
    std::ofstream(directory_.path() + "/rules.yaml") << text;
    return directory_.path() + "/rules.yaml";
  }
  ProgramResult run(const std::string& map, const Words& options = {},
                    const std::string& source = kLlamaCkpt) const {
    fs::remove_all(out_);
    Words words = {"export", source, out_, "--map", map};
    words.insert(words.end(), options.begin(), options.end());
    return run_program(words);
  }
  Json config() const { return Json::parse(text_of(out_ + "/config.json")); }
  /// Runs rules of which `set` is this, and which put <x> into config.json.
  ProgramResult run_set(const std::string& set, const Words& options = {}) const {
    return run(file("set:\n" + set + "\nconfig: {x: <x>}\nrules: [{from: '(.*)', to: $1}]\n"),
               options);
  }

  contracts::TemporaryDirectory directory_;
  std::string out_ = directory_.path() + "/out";
};

TEST_F(Maps, llama_takes_all_values_from_the_checkpoint) {
  const auto result = run("llama");
  ASSERT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("21 tensors, 22,176 elements, 86.62 KiB, in model.safetensors, "
                              "config.json\n"),
                    HasSubstr("values of the rules: all_heads 8, epsilon 0.0001, ffn 48, groups 2"),
                    Not(HasSubstr("does not say")), Not(HasSubstr("lost of"))));
  const auto written = config();
  EXPECT_EQ(written["num_key_value_heads"], 2);
  EXPECT_EQ(written["rms_norm_eps"], 1e-4);
  EXPECT_EQ(written["tie_word_embeddings"], false);
  EXPECT_EQ(written["architectures"], Json::array({"LlamaForCausalLM"}));
  EXPECT_EQ(text_of(out_ + "/config.json").find("\"architectures\""), 4U) << "in the file's order";
}

TEST_F(Maps, a_value_on_the_command_line_goes_before_the_checkpoint) {
  const auto result = run("llama", {"--set", "vocab=101", "--set", "rope_base=1e6", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.all();
  const auto told = Json::parse(result.out);
  EXPECT_EQ(told["values"]["vocab"], "101");
  EXPECT_EQ(told["contradicted"], Json::parse(R"({"rope_base": "5000", "vocab": "104"})"));
  EXPECT_EQ(told["lost"].size(), 2U) << "rows of the embedding and of the output layer";
  EXPECT_EQ(config()["vocab_size"], 101);
  EXPECT_EQ(config()["rope_theta"], 1e6);
}

TEST_F(Maps, a_value_from_the_command_line_ends_a_circle) {
  const std::string circle = "  x: {quotient: [<y>, 2]}\n  y: {quotient: [<x>, 2]}";
  EXPECT_THAT(run_set(circle).err, HasSubstr("is made from itself"));
  const auto result = run_set(circle, {"--set", "y=8"});
  EXPECT_THAT(result.out, HasSubstr("values of the rules: x 4, y 8\n")) << result.all();
  EXPECT_THAT(result.out, HasSubstr("--set y: the checkpoint itself says 2\n"));
}

TEST_F(Maps, what_the_tensors_say_can_not_be_set) {
  const auto result = run("llama", {"--set", "tied=true"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--set tied=true: the checkpoint's tensors say false"));
}

TEST_F(Maps, a_model_that_is_another_is_refused) {
  const auto unknown = run("llama", {}, kGpt);
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("the rules need a value for <heads>: the checkpoint does not "
                                     "say the argument num_attention_heads; give it with --set "
                                     "heads=VALUE"));
  const auto biased = run("llama", {"--set", "heads=2"}, kGpt);
  EXPECT_EQ(biased.exit_code, 2);
  EXPECT_THAT(biased.err, AllOf(HasSubstr("Llama has no such tensor"),
                                HasSubstr("[key decoder.final_layernorm.bias]")));
  const auto norm = run("gpt2");
  EXPECT_EQ(norm.exit_code, 2);
  EXPECT_THAT(norm.err, HasSubstr("the argument position_embedding_type is \"learned_absolute\"; "
                                  "the checkpoint says \"rope\""));
  EXPECT_FALSE(fs::exists(out_));
}

TEST_F(Maps, values_follow_from_tensors_and_arguments) {
  struct Row {
    const char* set;
    const char* is;
  };
  const std::vector<Row> rows = {
      {"  x: 5", "5"},
      {"  x: '5'", "\"5\""},
      {"  x: 1.5e3", "1500.0"},
      {"  x: null", "null"},
      {"  x: no", "\"no\""},
      {"  x: {size: 'embedding.*', dim: 0}", "104"},
      {"  x: {size: 'embedding.*', dim: -1}", "32"},
      {"  x: {count: '.*norm.*'}", "3"},
      {"  x: {absent: 'lm_head'}", "true"},
      {"  x: {absent: 'output_layer.*'}", "false"},
      {"  x: {argument: rotary_base}", "5000"},
      {"  x: {argument: normalization, means: {LayerNorm: a, RMSNorm: b}}", "\"b\""},
      {"  x: {argument: swiglu, means: {true: <y>}}\n  y: {argument: hidden_size}", "32"},
      {"  x: {quotient: [{difference: [<y>, 4]}, 2]}\n  y: 10", "3"},
      {"  x: [{argument: nothing}, {size: nothing, dim: 0}, 7]", "7"},
  };
  for (const auto& row : rows) {
    const auto result = run_set(row.set);
    ASSERT_EQ(result.exit_code, 0) << row.set << result.all();
    EXPECT_EQ(config()["x"], Json::parse(row.is)) << row.set;
  }
  ASSERT_EQ(run_set("  x: {argument: nothing}", {"--set", "x=3"}).exit_code, 0);
  EXPECT_EQ(config()["x"], 3);
}

TEST_F(Maps, a_value_that_is_not_known_is_named) {
  struct Row {
    const char* set;
    const char* says;
  };
  const std::vector<Row> rows = {
      {"  x: {argument: nothing}",
       "<x>: the checkpoint does not say the argument nothing; give it with --set x=VALUE"},
      {"  x: {argument: no_rope_freq}", "does not say the argument no_rope_freq"},
      {"  x: {quotient: [6, <y>]}\n  y: {argument: nothing}", "give it with --set y=VALUE"},
      {"  x: {quotient: [7, 2]}", "<x>: 7 can't be divided by 2 without remainder"},
      {"  x: {quotient: [7, 0]}", "7 can't be divided by 0"},
      {"  x: {difference: [7, yes]}", "yes is no whole number"},
      {"  x: {difference: [9223372036854775807, 1]}", "9223372036854775807 is no whole number"},
      {"  x: {difference: [7]}", "needs two numbers"},
      {"  x: {size: '.*weight', dim: 0}", "has such a dimension, or sizes differ"},
      {"  x: {size: 'embedding.*', dim: 2}", "has such a dimension, or sizes differ"},
      {"  x: {size: 'embedding.*', dim: 9}", "needs dim from -8 to 7, not 9"},
      {"  x: {count: nothing}", "there is no tensor nothing"},
      {"  x: {argument: normalization, means: {LayerNorm: 1}}", "is RMSNorm, of which the rules"},
      {"  x: <y>\n  y: <x>", "is made from itself"},
      {"  x: <y>", "<y>: the rules do not say it; give it with --set y=VALUE"},
      {"  x: []", "<x>: the list is empty"},
      {"  x: {sise: 'a', dim: 0}", "did you mean 'size'?"},
      {"  x: {size: 'a'}", "'dim'"},
      {"  x: {absent: 'a', dim: 0}", "unknown key 'dim'"},
      {"  x: {absent: 'a('}", "absent 'a(' is not a valid regular expression"},
  };
  for (const auto& row : rows) {
    const auto result = run_set(row.set);
    EXPECT_EQ(result.exit_code, 2) << row.set << result.all();
    EXPECT_THAT(result.err, HasSubstr(row.says)) << row.set;
  }
}

TEST_F(Maps, rules_say_for_which_arguments_they_hold) {
  const auto rules = [this](const std::string& expected) {
    return file("expects: {" + expected + "}\nrules: [{from: '(.*)', to: $1}]\n");
  };
  EXPECT_EQ(run(rules("swiglu: true, rotary_percent: 1, normalization: [LayerNorm, RMSNorm], "
                      "no_rope_freq: null, layernorm_epsilon or norm_epsilon: 0.0001"))
                .exit_code,
            0);
  EXPECT_FALSE(fs::exists(out_ + "/config.json"));
  const auto wrong = run(rules("swiglu: 1"));
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("the argument swiglu is 1; the checkpoint says true"));
  EXPECT_THAT(run(rules("a: [1, unsaid], swiglu: true")).out, Not(HasSubstr("does not say")));
  const auto none = run(rules("a or b: 1, swiglu: true"));
  EXPECT_EQ(none.exit_code, 0);
  EXPECT_THAT(none.out, HasSubstr("does not say whether the rules hold for: a or b\n"));
}

TEST_F(Maps, the_arguments_of_safetensors_are_those_of_their_config) {
  ASSERT_EQ(run("llama").exit_code, 0);
  const std::string source = directory_.path() + "/source";
  fs::rename(out_, source);
  const auto result = run(file("set: {n: {argument: num_hidden_layers}}\nconfig: {n: <n>}\nrules: "
                               "[{from: '(.*)', to: $1}]\n"),
                          {}, source);
  ASSERT_EQ(result.exit_code, 0) << result.all();
  EXPECT_EQ(config()["n"], 2);
}

TEST_F(Maps, layers_are_one_tensor_or_numbered_and_names_have_prefixes) {
  const auto stacked =
      "prefix: 'decoder\\.'\nrules:\n  - from: "
      "'layers(?:\\.(\\d+))?\\.mlp\\.linear_fc2\\.weight'\n    steps: [{unstack: "
      "0, unless: 1}]\n    to: decoder.layers.{1}.mlp.linear_fc2.weight\n";
  const auto first = run(file(stacked));
  ASSERT_EQ(first.exit_code, 0) << first.all();
  EXPECT_THAT(first.out, HasSubstr("2 tensors"));
  const std::string numbered = directory_.path() + "/numbered";
  fs::rename(out_, numbered);
  const auto second = run(file(stacked), {}, numbered);
  ASSERT_EQ(second.exit_code, 0) << second.all();
  EXPECT_EQ(text_of(out_ + "/model.safetensors"), text_of(numbered + "/model.safetensors"));
}

TEST_F(Maps, what_was_exported_comes_back) {
  ASSERT_EQ(run("llama", {"--set", "vocab=101"}).exit_code, 0);
  const std::string back = directory_.path() + "/back";
  const auto result = run_program(
      {"import", out_, back, "--map", "llama-import", "--set", "padded_vocab=104", "--megatron"});
  ASSERT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(result.out, HasSubstr("values of the rules: groups 2, padded_vocab 104\n"));
  EXPECT_FALSE(fs::exists(back + "/config.json"));
  const auto same = run_program({"diff", "--keys", "weight$", kLlamaCkpt, back});
  EXPECT_EQ(same.exit_code, 0) << same.all();
  EXPECT_THAT(same.out, HasSubstr("same: 22,176 elements"));
}

TEST_F(Maps, what_has_no_elements_is_not_called_proved) {
  const auto result = run(
      file("rules: [{from: 'embedding.*', steps: [{narrow: {dim: 0, size: 0}}], to: empty}]\n"));
  EXPECT_EQ(result.exit_code, 3) << result.all();
  EXPECT_THAT(result.out, AllOf(HasSubstr("nothing was proved"), Not(HasSubstr("read back"))));
}

TEST_F(Maps, are_listed_and_printed) {
  const auto list = run_program({"maps"});
  EXPECT_EQ(list.exit_code, 0);
  for (const auto& entry : fs::directory_iterator(std::string(REPRISE_SOURCE_DIR) + "/maps")) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string name = entry.path().stem().string();
    EXPECT_THAT(list.out, HasSubstr(name + "  "));
    const auto printed = run_program({"maps", name});
    EXPECT_EQ(printed.out, text_of(entry.path().string())) << name;
    EXPECT_EQ(run(file(printed.out)).exit_code, run(name).exit_code) << name;
  }
  EXPECT_THAT(run_program({"maps", "lama"}).err, HasSubstr("there is no map 'lama'"));
  EXPECT_THAT(run("lama").err,
              HasSubstr("maps that come with the program: gpt2, gpt2-import, llama"));
}

}  // namespace
}  // namespace reprise::test
