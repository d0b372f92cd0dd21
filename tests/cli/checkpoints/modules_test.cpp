// Tests the output of inspect and verify for a checkpoint with several modules that Megatron-Core
// wrote, and for damaged copies of this checkpoint.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/format/bytes_item.hpp"
#include "core/format/common_state.hpp"
#include "reprise/value.hpp"
#include "tests/program/damage.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

const std::string kMimo = "mcore_0.16.1_mimo_prefixed";
const std::string kInner = kMimo + "/iter_0000010";

void write_file(const std::filesystem::path& path, const Bytes& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

/// Replaces the value of an object.
void replace(const Victim& victim, const std::string& key, const Value& value) {
  const Bytes item = write_bytes_item(value);
  write_file(victim.file("__99_0.distcp"), item);
  victim.edit_metadata([&](Metadata& metadata) {
    metadata.catalog.files.emplace_back("__99_0.distcp");
    for (auto& object : metadata.catalog.objects) {
      if (object.key != key) continue;
      object.file = static_cast<FileIndex>(metadata.catalog.files.size() - 1);
      object.range = {0, item.size()};
    }
  });
}

void lose(const Victim& victim, const std::string& begin) {
  victim.edit_metadata([&begin](Metadata& metadata) {
    const auto lost = [&begin](const auto& item) { return item.key.starts_with(begin); };
    std::erase_if(metadata.catalog.objects, lost);
    std::erase_if(metadata.catalog.tensors, lost);
  });
}

Json findings_of(const Victim& victim, const std::vector<std::string>& options = {}) {
  std::vector<std::string> words = {"verify", "--json", victim.path()};
  words.insert(words.end(), options.begin(), options.end());
  const auto result = run_program(words);
  EXPECT_LE(result.exit_code, 1) << result.all();
  return Json::parse(result.out)["checkpoints"][0]["findings"];
}

TEST(InspectModules, ATableTellsThemForPeople) {
  const auto result = run_program({"inspect", data(kMimo)});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(result.out, AllOf(HasSubstr("\nmodule "), HasSubstr("\nimages "),
                                HasSubstr("chain of 2: fully_reshardable"),
                                HasSubstr("groups, scaler, type | groups, scaler, type"),
                                HasSubstr("pp 2, tp 2"), HasSubstr("pp 1, tp 2")));
  EXPECT_THAT(run_program({"inspect", "--keys", "exp_avg", data(kMimo)}).out,
              Not(HasSubstr("chain of 2")));
}

TEST(InspectModules, JsonTellsThemForPrograms) {
  const auto json = Json::parse(run_program({"inspect", "--json", data(kMimo)}).out);
  EXPECT_EQ(json["own_optimizers"], true);
  ASSERT_EQ(json["modules"].size(), 2U);
  const Json& images = json["modules"][0];
  EXPECT_EQ(images["name"], "images");
  EXPECT_EQ(images["keys"], "prefixed");
  EXPECT_EQ(images["tensors"], 12);
  EXPECT_EQ(images["objects"], 5);
  EXPECT_EQ(images["chain_length"], 1);
  EXPECT_EQ(images["rng_grid"], (Json{{"pp", 1}, {"tp", 2}}));
  EXPECT_EQ(images["expert_rng_grid"], nullptr);
  EXPECT_EQ(images["layout"], nullptr);
  const Json& language = json["modules"][1];
  EXPECT_EQ(language["name"], "language");
  EXPECT_EQ(language["tensors"], 16);
  EXPECT_EQ(language["chain_length"], 2);
  EXPECT_EQ(language["rng_grid"], (Json{{"pp", 2}, {"tp", 2}}));
  EXPECT_EQ(language["optimizers"][1]["suffix"], ".1");
  EXPECT_EQ(language["optimizers"][1]["sharding_type"], "fully_reshardable");
  EXPECT_EQ(language["optimizers"][1]["metadata"],
            (Json{"param_groups", "grad_scaler", "param_state_sharding_type"}));
}

TEST(InspectModules, ACheckpointOfOneModelSaysNothingNew) {
  for (const char* name : {"mcore_0.16.1_gpt_tp2_pp2", "torch_2.15.0/plain"}) {
    EXPECT_THAT(run_program({"inspect", data(name)}).out, Not(HasSubstr("\nmodule "))) << name;
    const auto json = Json::parse(run_program({"inspect", "--json", data(name)}).out);
    EXPECT_FALSE(json.contains("modules")) << name;
  }
}

TEST(InspectModules, ShowsWhatIsGoneAndWhatTheCommonStateSays) {
  const Victim victim(kInner);
  lose(victim, "mimo.language.optimizer.mimo.language.1.");
  lose(victim, "mimo.images.optimizer.mimo.images.grad_scaler");
  const Value said = Dict{{"tensor_model_parallel_size", 2},
                          {"pipeline_model_parallel_size", 2},
                          {"ranks", List{2, 3, 4, 5}}};
  write_file(victim.file("common.pt"),
             write_common_file(
                 Dict{{"args", Dict{{"modules", Dict{{"language", said}, {"audio", said}}}}}}));
  const auto result = run_program({"inspect", victim.path()});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(result.out, AllOf(HasSubstr("groups, type  "), HasSubstr("tp=2,pp=2 ranks 2-5"),
                                HasSubstr("\naudio     none")));
}

TEST(VerifyModules, AWholeOneIsWhole) {
  const auto result = run_program({"verify", data(kMimo)});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(result.out, HasSubstr("0 errors, 0 warnings"));
}

TEST(VerifyModules, WhatIsLostIsNamed) {
  struct Row {
    const char* lost;  // prefix of the keys that are removed
    const char* key;
    const char* says;
  };
  const std::vector<Row> rows = {
      {"mimo.images.optimizer.mimo.images.param_groups",
       "mimo.images.optimizer.mimo.images.param_groups",
       "module images stores optimizer state but not its param_groups"},
      {"mimo.images.optimizer.mimo.images.grad_scaler",
       "mimo.images.optimizer.mimo.images.grad_scaler", "not its grad_scaler"},
      {"mimo.language.optimizer.mimo.language.1.param_groups",
       "mimo.language.optimizer.mimo.language.1.param_groups",
       "module language, optimizer 1 of its chain of 2,"},
      {"mimo.language.optimizer.mimo.language.param_state_sharding_type",
       "mimo.language.optimizer.mimo.language.param_state_sharding_type",
       "module language, optimizer 0 of its chain of 2,"},
      {"mimo.language.rng_state", "mimo.language.rng_state",
       "module language stores no random states"},
  };
  for (const auto& row : rows) {
    const Victim victim(kInner);
    lose(victim, row.lost);
    const Json findings = findings_of(victim, {"--no-payload"});
    ASSERT_EQ(findings.size(), 1U) << row.lost << findings;
    EXPECT_EQ(findings[0]["severity"], "error");
    EXPECT_EQ(findings[0]["code"], "NOT_STORED");
    EXPECT_EQ(findings[0]["key"], row.key);
    EXPECT_THAT(findings[0]["message"].get<std::string>(), HasSubstr(row.says)) << row.lost;
  }
}

Value group(double wd_mult) {
  return Dict{{"wd_mult", wd_mult},
              {"lr_mult", 1.0},
              {"is_expert_parallel", false},
              {"is_decoupled_lr", false}};
}

TEST(VerifyModules, ValuesAreReadWithThePayload) {
  const std::string images = "mimo.images.optimizer.mimo.images.";
  const std::string second = "mimo.language.optimizer.mimo.language.1.";
  struct Row {
    std::string key;
    Value value;
    const char* severity;
    const char* says;
  };
  const std::vector<Row> rows = {
      {second + "param_groups", List{List{group(1.0), group(1.0)}}, "error",
       "module language, chained optimizer 1: its param_groups: groups 0 and 1 have the same "
       "identifier"},
      {images + "param_groups", List{3}, "error",
       "module images: its param_groups: group 0 is not"},
      {images + "grad_scaler", List{3}, "error",
       "module images: its grad_scaler: it is not a dict"},
      {images + "param_state_sharding_type", List{"dp_reshardable"}, "error",
       "module images says dp_reshardable for its state, but the keys are those of tensors"},
      {second + "param_state_sharding_type", List{"dp_zero_gather_scatter"}, "note",
       "module language, optimizer 1 of its chain of 2, says dp_zero_gather_scatter"},
      {images + "param_state_sharding_type", List{"typo"}, "warning", "not a known sharding type"},
  };
  for (const auto& row : rows) {
    const Victim victim(kInner);
    replace(victim, row.key + "/shard_0_1", row.value);
    const Json findings = findings_of(victim);
    ASSERT_EQ(findings.size(), 1U) << row.key << findings;
    EXPECT_EQ(findings[0]["severity"], row.severity) << row.key;
    EXPECT_THAT(findings[0]["message"].get<std::string>(), HasSubstr(row.says));
    EXPECT_THAT(findings[0]["key"].get<std::string>(), HasSubstr(row.key));
    EXPECT_THAT(findings_of(victim, {"--no-payload"}), IsEmpty()) << row.key;
  }
}

TEST(VerifyModules, TheCommonStateIsHeldAgainstTheKeys) {
  const auto sizes = [](int tp, int pp) {
    return Value(Dict{{"tensor_model_parallel_size", tp}, {"pipeline_model_parallel_size", pp}});
  };
  struct Row {
    Dict modules;
    std::vector<std::string> says;
  };
  const std::vector<Row> rows = {
      {{{"images", sizes(2, 1)}, {"language", sizes(2, 2)}}, {}},
      {{{"images", sizes(2, 1)}, {"language", sizes(2, 2)}, {"audio", sizes(1, 1)}},
       {"names module audio under args['modules'], but nothing of it is stored"}},
      {{{"images", sizes(2, 1)}},
       {"module language is stored, but args['modules'] does not name it"}},
      {{{"images", sizes(1, 2)}, {"language", sizes(2, 2)}},
       {"the random states of module images form a grid of pp 1, tp 2, but args['modules'] says "
        "pipeline_model_parallel_size 2, tensor_model_parallel_size 1"}},
  };
  for (const auto& row : rows) {
    const Victim victim(kInner);
    write_file(victim.file("common.pt"),
               write_common_file(Dict{{"args", Dict{{"modules", row.modules}}}}));
    std::vector<std::string> messages;
    for (const auto& finding : findings_of(victim)) messages.push_back(finding["message"]);
    ASSERT_EQ(messages.size(), row.says.size()) << Json(messages);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      EXPECT_THAT(messages[i], HasSubstr(row.says[i]));
    }
  }
}

TEST(VerifyModules, GarbledValuesAreDamageAndNoMore) {
  const std::string type = "mimo.images.optimizer.mimo.images.param_state_sharding_type/shard_0_1";
  const Victim victim(kInner);
  victim.edit_metadata([&type](Metadata& metadata) {
    for (auto& object : metadata.catalog.objects) {
      if (object.key == type) object.range.offset += 1;
    }
  });
  const auto result = run_program({"verify", victim.path()});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  EXPECT_THAT(result.out, HasSubstr(type));
  const auto inspected = run_program({"inspect", victim.path()});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.all();
  EXPECT_THAT(inspected.out, HasSubstr("by parameter"));
}

}  // namespace
}  // namespace reprise::test
