// Tests the old form of module keys, which has no prefix. Such keys are written, read, assigned to
// modules, or refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/job/module_worlds.hpp"

namespace reprise::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const char* const kBuckets = "dp_reshardable";

ModuleConfig eyes(const char* layout, const std::string& sharding = "fully_reshardable") {
  return module_on("eyes", "audio-tiny", layout, {}, sharding);
}
ModuleConfig language(const char* layout, const std::string& sharding = "fully_reshardable") {
  return module_on("language", "language-moe", layout, {}, sharding);
}

JobConfig written(KeyForm keys, JobConfig config) {
  config.checkpoint.keys = keys;
  return config;
}

/// Returns the keys of the state that a job passes to a save. Keys of objects are without
/// coordinates.
std::vector<std::string> keys_in(const JobConfig& config) {
  const Life life = trained_on(config, 1, handed_over).sound();
  std::vector<std::string> keys;
  for (const auto& tensor : life.state.tensors) keys.push_back(tensor.key);
  for (const auto& objects : life.objects) {
    for (const auto& object : objects) keys.push_back(object.key);
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

TEST(BareKeys, name_their_module_by_the_models_own_names_without_a_prefix) {
  for (const std::string sharding : {"fully_reshardable", "fsdp_dtensor", kBuckets}) {
    SCOPED_TRACE(sharding);
    const std::vector<ModuleConfig> modules = {eyes("tp2"), language("tp2 ep2 dp2", sharding)};
    const auto bare = keys_in(written(KeyForm::kBare, job_of(modules)));
    const auto prefixed = keys_in(job_of(modules));
    EXPECT_EQ(bare.size(), prefixed.size()) << "each key has its counterpart";
    for (const auto& key : prefixed) EXPECT_TRUE(key.starts_with("mimo.")) << key;
    for (const auto& key : bare) {
      EXPECT_FALSE(key.starts_with("mimo.")) << key;
      const std::string owner = owner_of(key, modules);
      EXPECT_TRUE(owner == "eyes" || owner == "language") << key;
    }
    EXPECT_EQ(std::count(bare.begin(), bare.end(), "eyes.rng_state"), 1);
    EXPECT_EQ(std::count(bare.begin(), bare.end(), "language.expert_rng_state"), 1);
    const bool in_buckets = sharding == kBuckets;
    EXPECT_EQ(std::count(bare.begin(), bare.end(),
                         "chained_0.optimizer.distributed.dp_group_idx_0.optimizer"),
              in_buckets ? 1 : 0);
  }
}

TEST(BareKeys, of_buckets_of_two_modules_are_refused_by_the_modules_names) {
  const JobConfig both =
      written(KeyForm::kBare, job_of({eyes("tp2", kBuckets), language("tp2 ep2 dp2", kBuckets)}));
  const Life life = trained_on(both, 1, handed_over);
  for (const auto& error : life.errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), Code::kUnsupported);
    EXPECT_THAT(error->message(), HasSubstr("the modules eyes, language are dp_reshardable"));
  }
  JobConfig one = both;
  one.makeup.modules[0].frozen = true;
  EXPECT_TRUE(trained_on(one, 1, handed_over).ended_well());
  EXPECT_TRUE(trained_on(written(KeyForm::kPrefixed, both), 1, handed_over).ended_well());
}

TEST(BareKeys, and_prefixed_ones_are_read_by_jobs_that_write_either) {
  for (const std::string sharding :
       {"fully_reshardable", "fully_sharded_model_space", "fsdp_dtensor", kBuckets}) {
    const JobConfig config = job_of({eyes("tp2"), language("tp2 ep2 dp2", sharding)});
    const Life reference = trained_on(config, 5);
    for (const KeyForm from : {KeyForm::kPrefixed, KeyForm::kBare}) {
      for (const KeyForm to : {KeyForm::kPrefixed, KeyForm::kBare}) {
        SCOPED_TRACE(sharding + std::string(name_of(from)) + std::string(name_of(to)));
        SimStore store;
        saved_on(store, written(from, config), 3);
        JobConfig next = written(to, config);
        next.training.seed = 99;
        const Life later = resumed_on(store, next, 2);
        ASSERT_TRUE(later.ended_well()) << later.why();
        EXPECT_EQ(first_difference(later.state, reference.state), "");
        for (const auto& notes : later.notes) EXPECT_THAT(notes, ElementsAre());
      }
    }
  }
}

TEST(BareKeys, beside_prefixed_ones_are_refused_with_examples_on_all_ranks) {
  SimStore store;
  const JobConfig config = job_of({eyes("tp2"), language("tp2 ep2 dp2")});
  saved_on(store, written(KeyForm::kMixed, config), 1);
  for (const KeyForm own : {KeyForm::kPrefixed, KeyForm::kBare, KeyForm::kMixed}) {
    const Life life = resumed_on(store, written(own, config), 1);
    for (const auto& error : life.errors) {
      ASSERT_TRUE(error.has_value());
      EXPECT_EQ(error->code(), Code::kUnsupported);
      EXPECT_THAT(error->message(), HasSubstr("prefixed mimo.eyes."));
      EXPECT_THAT(error->message(), HasSubstr("bare optimizer.mimo."));
    }
  }
}

}  // namespace
}  // namespace reprise::sim
