// Tests the verb `match`: keys, shapes and dtypes of a checkpoint against a list.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/damage.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test::match_verb_test {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class MatchVerb : public ::testing::Test {
 protected:
  /// Returns what a program would ask for that has the tensors and objects of the checkpoint.
  static Json keys_of(const std::string& checkpoint) {
    const Json document = Json::parse(run_program({"inspect", "--json", checkpoint}).out);
    Json keys = Json::object();
    for (const Json& tensor : document["tensors"]) {
      keys[tensor["key"].get<std::string>()] = {
          {"shape", tensor["shape"]}, {"dtype", "torch." + tensor["dtype"].get<std::string>()}};
    }
    for (const Json& object : document["objects"]) {
      const std::string key = object["key"];
      keys[key.substr(0, key.find("/shard_"))] = Json::object();
    }
    return keys;
  }
  ProgramResult match(const std::string& checkpoint, const Json& keys,
                      std::vector<std::string> options = {}) const {
    const std::string file = directory_.path() + "/keys.json";
    std::ofstream(file) << keys;
    std::vector<std::string> words{"match", checkpoint, "--expect", file};
    words.insert(words.end(), options.begin(), options.end());
    return run_program(words);
  }

 private:
  contracts::TemporaryDirectory directory_;
};

TEST_F(MatchVerb, each_form_matches_its_own_keys) {
  for (const char* fixture :
       {"mcore_0.16.1_gpt_tp2_pp2", "mcore_0.16.1_buckets", "torch_2.15.0/plain",
        "torch_2.15.0/fsdp2_model", "safetensors_0.8.0/one", "torch_save_2.15.0/training.pt"}) {
    const auto result = match(data(fixture), keys_of(data(fixture)), {"--strict"});
    EXPECT_EQ(result.exit_code, 0) << fixture << result.all();
    EXPECT_THAT(result.out, HasSubstr("0 missing, 0 of another shape")) << fixture;
  }
}

TEST_F(MatchVerb, what_does_not_match_is_named) {
  const std::string checkpoint = data("torch_2.15.0/same_content_a");
  Json keys = keys_of(checkpoint);
  const std::string first = "layers.0.weight";
  ASSERT_TRUE(keys.contains(first));
  Json changed = keys;
  changed[first]["shape"].push_back(7);
  auto result = match(checkpoint, changed);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("1 of another shape"));
  EXPECT_THAT(result.out, HasSubstr(first));

  changed = keys;
  changed[first]["dtype"] = changed[first]["dtype"] == "torch.bool" ? "int8" : "bool";
  EXPECT_THAT(match(checkpoint, changed).out, HasSubstr("1 of another dtype"));
  EXPECT_EQ(match(checkpoint, changed).exit_code, 1);
  EXPECT_EQ(match(checkpoint, changed, {"--any-dtype"}).exit_code, 0);

  changed = keys;
  changed[first + "_2"] = keys[first];
  changed.erase(first);
  result = match(checkpoint, changed);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("similar: " + first));
  EXPECT_THAT(result.out, HasSubstr("1 missing"));
}

TEST_F(MatchVerb, unexpected_keys_fail_only_if_strict) {
  const std::string checkpoint = data("torch_2.15.0/same_content_a");
  Json keys = keys_of(checkpoint);
  const std::string first = keys.begin().key();
  keys.erase(first);
  const auto lax = match(checkpoint, keys);
  EXPECT_EQ(lax.exit_code, 0) << lax.all();
  EXPECT_THAT(lax.out, HasSubstr("1 unexpected, which --strict refuses"));
  const auto strict = match(checkpoint, keys, {"--strict"});
  EXPECT_EQ(strict.exit_code, 1);
  EXPECT_THAT(strict.out, HasSubstr(first));
}

TEST_F(MatchVerb, a_prefix_is_hinted_and_renamed) {
  const std::string checkpoint = data("torch_2.15.0/same_content_a");
  Json keys = Json::object();
  const Json stored = keys_of(checkpoint);
  for (const auto& [key, entry] : stored.items()) keys["module." + key] = entry;
  const auto result = match(checkpoint, keys);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("--rename 's/^/module./'"));
  const Json document = Json::parse(match(checkpoint, keys, {"--json"}).out);
  const std::string rename = document["rename"];
  EXPECT_EQ(match(checkpoint, keys, {"--strict", "--rename", rename}).exit_code, 0);
}

TEST_F(MatchVerb, a_tensor_in_place_of_an_object_is_said) {
  const std::string checkpoint = data("safetensors_0.8.0/one");
  const Json stored = keys_of(checkpoint);
  const auto result = match(checkpoint, {{stored.begin().key(), Json::object()}});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("a tensor"));
  EXPECT_THAT(result.out, Not(HasSubstr("similar")));
}

TEST_F(MatchVerb, one_key_that_matches_is_singular) {
  const std::string checkpoint = data("safetensors_0.8.0/one");
  const Json stored = keys_of(checkpoint);
  const auto result = match(checkpoint, {{stored.begin().key(), stored.begin().value()}});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(result.out, ::testing::StartsWith("match: 1 of 1 expected key matches; "));
}

TEST_F(MatchVerb, many_missing_keys_are_not_all_compared) {
  Json keys = Json::object();
  for (int i = 0; i < 130; ++i) {
    keys["none" + std::to_string(i)] = {{"shape", {1}}, {"dtype", "int8"}};
  }
  EXPECT_THAT(match(data("safetensors_0.8.0/one"), keys).out,
              HasSubstr("For 30 missing keys, no similar names were looked for."));
}

TEST_F(MatchVerb, nothing_to_compare_is_inconclusive) {
  const std::string checkpoint = data("torch_2.15.0/same_content_a");
  EXPECT_EQ(match(checkpoint, Json::object()).exit_code, 3);
  EXPECT_EQ(match(checkpoint, keys_of(checkpoint), {"--only", "^nothing$"}).exit_code, 3);
}

TEST_F(MatchVerb, a_list_of_another_form_is_refused) {
  const std::string checkpoint = data("torch_2.15.0/same_content_a");
  for (const Json& keys : std::vector<Json>{
           {{"a", 1}}, {{"a", {{"shape", {1}}}}}, {{"a", {{"shape", {-1}}, {"dtype", "int8"}}}}}) {
    EXPECT_EQ(match(checkpoint, keys).exit_code, 2) << keys;
  }
  const auto wrong = match(checkpoint, {{"a", {{"shape", {1}}, {"dtype", "flaot32"}}}});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("float32"));
  const Json large{{"a", {{"shape", {18446744073709551615U}}, {"dtype", "int8"}}}};
  EXPECT_EQ(match(checkpoint, large).exit_code, 2);
  EXPECT_EQ(run_program({"match", checkpoint}).exit_code, 2);
  EXPECT_EQ(run_program({"match", "--snippet"}).exit_code, 0);
}

}  // namespace
}  // namespace reprise::test::match_verb_test
