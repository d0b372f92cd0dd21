// Tests the keys of a checkpoint that a job of modules saves, and its common state.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/job/module_worlds.hpp"

namespace reprise::sim {
namespace {

using testing::UnorderedElementsAreArray;

// --- keys ---------------------------------------------------------------------------------------

/// The keys in a save's checkpoint, as the engine's catalog lists them.
struct Keys {
  std::set<std::string> tensors;
  std::vector<std::string> objects;
};

Keys keys_in(SimStore& store, std::int32_t ranks = 1) {
  Keys keys;
  World world({.world_size = ranks}, store);
  world.run([&](Ports& ports, GlobalRank rank) {
    StateDict nothing;
    const LoadOptions options{.directory = "run"};
    const auto group = ports.fabric.communicator(Group::world(ranks));
    try {
      load(ports, *group, options, [&](const Candidate& offered) {
        if (rank.value == 0) {
          for (const auto& tensor : offered.catalog.tensors) keys.tensors.insert(tensor.key);
          for (const auto& object : offered.catalog.objects) keys.objects.push_back(object.key);
        }
        return Wanted{&nothing, {}};
      });
    } catch (const Error&) {  // expected, since the load requests none of the keys
    }
  });
  return keys;
}

Keys saved_keys(const JobConfig& config) {
  SimStore store;
  EXPECT_TRUE(saved_on(store, config, 1).ended_well());
  return keys_in(store);
}

/// Returns a job with a vision module on TP2 and a language module with experts. The language
/// module's optimizer consists of two chained optimizers.
JobConfig vision_and_chain(const std::string& sharding) {
  return job_of({module_on("vision", "vision-tiny", "tp2", {}, sharding),
                 module_on("language", "language-moe", "tp2 ep2 dp2", {}, sharding)});
}

const std::vector<std::string> kRandom = {"mimo.vision.rng_state/shard_0.0_1.2",
                                          "mimo.vision.rng_state/shard_0.1_1.2",
                                          "mimo.language.rng_state/shard_0.0_1.2",
                                          "mimo.language.rng_state/shard_0.1_1.2",
                                          "mimo.language.expert_rng_state/shard_0.0.0_1.2.2",
                                          "mimo.language.expert_rng_state/shard_0.0.1_1.2.2",
                                          "mimo.language.expert_rng_state/shard_0.1.0_1.2.2",
                                          "mimo.language.expert_rng_state/shard_0.1.1_1.2.2"};

std::vector<std::string> joined(std::vector<std::string> keys,
                                const std::vector<std::string>& more) {
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

/// Returns the keys of the settings of three optimizers. The settings of each optimizer are three
/// objects.
std::vector<std::string> settings_keys(bool prefixed) {
  std::vector<std::string> keys;
  for (const std::string optimizer : {"vision", "language", "language.1"}) {
    for (const std::string part : {"param_groups", "grad_scaler", "param_state_sharding_type"}) {
      const std::string module = optimizer.substr(0, optimizer.find('.'));
      keys.push_back((prefixed ? "mimo." + module + "." : "") + "optimizer.mimo." + optimizer +
                     "." + part + "/shard_0_1");
    }
  }
  return keys;
}

TEST(ModulesKeys, objects_have_the_keys_of_the_field_prefixed_and_bare) {
  for (const auto* sharding : {"fully_reshardable", "fully_sharded_model_space", "fsdp_dtensor"}) {
    SCOPED_TRACE(sharding);
    JobConfig config = vision_and_chain(sharding);
    EXPECT_THAT(saved_keys(config).objects,
                UnorderedElementsAreArray(joined(settings_keys(true), kRandom)));
    config.checkpoint.keys = KeyForm::kMixed;
    EXPECT_THAT(saved_keys(config).objects,
                UnorderedElementsAreArray(joined(settings_keys(false), kRandom)));
    std::vector<std::string> bare_random;
    for (const auto& key : kRandom) bare_random.push_back(key.substr(std::string("mimo.").size()));
    config.checkpoint.keys = KeyForm::kBare;
    EXPECT_THAT(saved_keys(config).objects,
                UnorderedElementsAreArray(joined(settings_keys(false), bare_random)));
  }
}

TEST(ModulesKeys, groups_and_scaler_are_of_the_distributed_optimizers) {
  std::vector<std::string> right = kRandom;
  const auto add = [&right](const std::string& prefix, int groups) {
    for (int g = 0; g < groups; ++g) {
      for (const auto* part :
           {"optimizer", "grad_scaler", "per_bucket_numel", "per_bucket_numel_unpadded"}) {
        right.push_back(prefix + "optimizer.distributed.dp_group_idx_" + std::to_string(g) + "." +
                        part + "/shard_0_1");
      }
    }
  };
  add("mimo.vision.", 2);              // one bucket group per rank of tp
  add("mimo.language.chained_0.", 2);  // one bucket group per rank of tp
  add("mimo.language.chained_1.", 4);  // one bucket group per rank of etp x ep
  const std::string type = "param_state_sharding_type/shard_0_1";
  for (const std::string optimizer : {"vision", "language", "language.1"}) {
    const std::string module = optimizer.substr(0, optimizer.find('.'));
    right.push_back("mimo." + module + ".optimizer.mimo." + optimizer + "." + type);
  }
  JobConfig config = vision_and_chain("dp_reshardable");
  const Keys keys = saved_keys(config);
  EXPECT_THAT(keys.objects, UnorderedElementsAreArray(right));
  std::size_t buckets = 0;
  for (const auto& key : keys.tensors) buckets += key.ends_with(".exp_avg") ? 1 : 0;
  EXPECT_GE(buckets, 8U);
}

TEST(ModulesKeys, all_keys_of_tensors_begin_with_the_prefix_of_their_module) {
  for (const auto* sharding : {"fully_reshardable", "fsdp_dtensor", "dp_reshardable"}) {
    const Keys keys = saved_keys(vision_and_chain(sharding));
    EXPECT_FALSE(keys.tensors.empty());
    for (const auto& key : keys.tensors) {
      EXPECT_TRUE(key.starts_with("mimo.vision.") || key.starts_with("mimo.language.")) << key;
    }
  }
  const Keys keys = saved_keys(vision_and_chain("fully_reshardable"));
  for (const auto* key :
       {"mimo.vision.embedder.weight", "mimo.vision.optimizer.state.exp_avg.embedder.weight",
        "mimo.vision.decoder.layers.3.mlp.linear_fc2.weight",
        "mimo.language.decoder.layers.19.mlp.experts.linear_fc1.weight",
        "mimo.language.embedding.word_embeddings.weight"}) {
    EXPECT_TRUE(keys.tensors.contains(key)) << key;
  }
}

TEST(ModulesKeys, each_object_has_one_main_copy_under_every_grid) {
  for (const auto* layout : {"tp2 pp2 dp2", "cp2 dp2", "tp2 cp2", "dp4 dp_replicate2", "pp4"}) {
    for (const auto* sharding : {"fully_reshardable", "dp_reshardable"}) {
      SCOPED_TRACE(std::string(layout) + " " + sharding);
      SimStore store;
      const Life life = live_on(
          store,
          job_of({module_on("a", "audio-tiny", "tp2"),
                  module_on("b", "language-tiny", layout, {}, sharding)}),
          [](const Seat&) {}, handed_over);
      std::map<std::string, int> mains;
      for (const auto& objects : life.objects) {
        for (const auto& object : objects) {
          const auto key = stored_key(object);
          mains[key] += object.replica == 0 ? 1 : 0;
        }
      }
      EXPECT_GT(mains.size(), 6U);
      for (const auto& [key, count] : mains) EXPECT_EQ(count, 1) << key;
      for (const auto& finding : life.findings) ADD_FAILURE() << finding;
    }
  }
}

TEST(ModulesKeys, random_states_are_copied_along_dp_and_cp_of_their_module) {
  SimStore store;
  const Life life = live_on(
      store, job_of({module_on("a", "audio-tiny", "tp2"), module_on("b", "audio-tiny", "cp2 dp2")}),
      [](const Seat&) {}, handed_over);
  const auto copy_on = [&life](std::size_t rank) {
    for (const auto& object : life.objects[rank]) {
      if (is_random(object.key)) return object.replica;
    }
    return -1;
  };
  std::vector<std::int32_t> copies;
  for (std::size_t rank = 0; rank < 6; ++rank) copies.push_back(copy_on(rank));
  EXPECT_EQ(copies, (std::vector<std::int32_t>{0, 0, 0, 1, 2, 3}));
}

TEST(ModulesKeys, what_a_save_leaves_out_is_under_no_key) {
  for (const auto* sharding : {"fully_reshardable", "dp_reshardable", "fsdp_dtensor"}) {
    SimStore without_optimizer;
    saved_on(without_optimizer, vision_and_chain(sharding), 1, {.optimizer = false});
    Keys keys = keys_in(without_optimizer);
    EXPECT_THAT(keys.objects, UnorderedElementsAreArray(kRandom));
    for (const auto& key : keys.tensors) {
      EXPECT_EQ(key.find("optimizer"), std::string::npos) << key;
    }
    SimStore without_random;
    saved_on(without_random, vision_and_chain(sharding), 1, {.random = false});
    keys = keys_in(without_random);
    EXPECT_FALSE(keys.objects.empty());
    for (const auto& key : keys.objects) EXPECT_FALSE(is_random(key)) << key;
  }
}

TEST(ModulesKeys, padding_is_told_of_a_modules_buckets_by_their_prefixed_keys) {
  SimStore store;
  const std::string bucket =
      "optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_(torch.bfloat16, "
      "torch.float32).bucket_idx_0.exp_avg";
  live_on(store, job_of({module_on("a", "audio-tiny", "tp1", {}, "dp_reshardable")}),
          [&bucket](const Seat& seat) {
            EXPECT_FALSE(seat.job.padding_of("mimo.a." + bucket).empty());
            EXPECT_TRUE(seat.job.padding_of(bucket).empty());
            EXPECT_TRUE(seat.job.padding_of("mimo.b." + bucket).empty());
          });
}

// --- the common state ---------------------------------------------------------------------------

TEST(ModulesKeys, the_common_state_is_equal_on_all_ranks_without_optimizers) {
  for (const auto* sharding : {"fully_reshardable", "dp_reshardable"}) {
    SimStore store;
    const Life life = live_on(
        store, vision_and_chain(sharding), [](const Seat& seat) { seat.train(2); }, handed_over);
    ASSERT_TRUE(life.ended_well());
    std::vector<std::string> keys;
    for (const auto& [key, value] : *life.commons[0].as<Dict>()) {
      keys.push_back(*key.as<std::string>());
    }
    EXPECT_THAT(
        keys, testing::UnorderedElementsAre("args", "checkpoint_version", "iteration",
                                            "opt_param_scheduler", "content_metadata", "reprise"));
    EXPECT_EQ(*life.commons[0].find("checkpoint_version"), Value(3.0));
    for (const auto& common : life.commons) EXPECT_EQ(common, life.commons[0]);
    const CommonState decoded = decode_common(life.commons[0]);
    EXPECT_TRUE(same_grids(decoded.modules, vision_and_chain(sharding).makeup.modules));
    EXPECT_EQ(name_of(decoded.modules[1].optimizer_sharding), sharding);
    EXPECT_EQ(decoded.modules[1].model, "language-moe");
  }
}

}  // namespace
}  // namespace reprise::sim
