// Checkpoints that a job of modules saves and loads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/sim/job/module_worlds.hpp"

namespace reprise::sim {
namespace {

using testing::HasSubstr;
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
    const LoadSettings options{.path = "run"};
    const auto group = ports.fabric.communicator(Group::world(ranks));
    try {
      load(ports, *group, options, [&](const Candidate& offered) {
        if (rank.value == 0) {
          for (const auto& tensor : offered.catalog.tensors) keys.tensors.insert(tensor.key);
          for (const auto& object : offered.catalog.objects) keys.objects.push_back(object.key);
        }
        return Wanted{&nothing, {}};
      });
    } catch (const Error&) {  // about what is not requested
    }
  });
  return keys;
}

Keys saved_keys(const JobConfig& config) {
  SimStore store;
  EXPECT_TRUE(saved_on(store, config, 1).ended_well());
  return keys_in(store);
}

/// Returns a job with vision on TP2 and a language model with experts, whose optimizer is a chain
/// of two.
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

/// Returns the keys of the settings of three optimizers, each with three parts.
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

TEST(ModulesCheckpoint, objects_have_the_keys_of_the_field_prefixed_and_bare) {
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

TEST(ModulesCheckpoint, under_dp_reshardable_groups_and_scaler_are_of_the_distributed_optimizers) {
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
  add("mimo.vision.", 2);              // tp 2
  add("mimo.language.chained_0.", 2);  // tp 2
  add("mimo.language.chained_1.", 4);  // etp 2 x ep 2
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

TEST(ModulesCheckpoint, all_keys_of_tensors_begin_with_the_prefix_of_their_module) {
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

TEST(ModulesCheckpoint, each_object_has_one_main_copy_under_every_grid) {
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
          const auto key = object_key(object.key, object.coordinate, object.grid);
          mains[key] += object.replica == 0 ? 1 : 0;
        }
      }
      EXPECT_GT(mains.size(), 6U);
      for (const auto& [key, count] : mains) EXPECT_EQ(count, 1) << key;
      for (const auto& ruling : life.rulings) ADD_FAILURE() << ruling;
    }
  }
}

TEST(ModulesCheckpoint, random_states_are_copied_by_the_ranks_of_dp_x_cp_of_their_module) {
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

TEST(ModulesCheckpoint, what_a_save_leaves_out_is_under_no_key) {
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

TEST(ModulesCheckpoint, padding_is_told_of_a_modules_buckets_by_their_prefixed_keys) {
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

TEST(ModulesCheckpoint, the_common_state_is_the_same_on_all_ranks_and_without_any_optimizer) {
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

// --- random streams -----------------------------------------------------------------------------

/// Returns the value of an object from the rank that has it.
Value object_in(const Life& life, const std::string& key) {
  const auto* object = life.state.object(key);
  return object == nullptr ? Value() : object->value;
}

TEST(ModulesCheckpoint, random_streams_of_modules_differ_and_move_alike) {
  const auto modules = [](const char* a, const char* b) {
    return job_of({module_on("a", "audio-tiny", a), module_on("b", "audio-tiny", b)});
  };
  const Life life = trained_on(modules("tp2", "tp2"), 2);
  std::set<std::string> seen;
  for (const auto* module : {"a", "b"}) {
    for (const auto* place : {"0.0", "0.1"}) {
      const auto streams = decode_rng(
          object_in(life, "mimo." + std::string(module) + ".rng_state/shard_" + place + "_1.2"));
      ASSERT_EQ(streams.size(), 1U);
      EXPECT_TRUE(seen.insert(std::to_string(streams[0].host.seed)).second);
      EXPECT_TRUE(seen.insert(std::to_string(streams[0].host.tally)).second);
      EXPECT_EQ(streams[0].host.counter, 6U) << "three numbers for each step";
    }
  }
  const HostRng plain = HostRng::fresh(7, 0, 0);
  EXPECT_FALSE(seen.contains(std::to_string(plain.host.seed))) << "the seed of a job of one model";
}

/// Returns each rank's own stream of the module, by global rank.
std::map<std::int32_t, HostRng> streams_of(SimStore& store, const JobConfig& config, int steps,
                                           bool loads, std::vector<std::string>* notes = nullptr) {
  std::map<std::int32_t, HostRng> streams;
  const Life life = live_on(store, config, [&](const Seat& seat) {
    if (loads) seat.load();
    seat.train(steps);
    for (const auto& module : seat.job.modules()) {
      streams[seat.job.rank().value] = module.streams.host;
    }
    if (!loads) seat.save();
  });
  EXPECT_TRUE(life.ended_well());
  if (notes != nullptr) *notes = life.notes.front();
  return streams;
}

JobConfig by_dp(const char* a, const char* b) {
  JobConfig config = job_of({module_on("a", "audio-tiny", a), module_on("b", "audio-tiny", b)});
  config.training.random_by_dp = true;
  return config;
}

TEST(ModulesCheckpoint, streams_that_differ_by_dp_are_saved_as_the_list_of_all_dp_ranks) {
  SimStore store;
  const Life life = live_on(
      store, by_dp("tp2", "cp2 dp2"), [](const Seat& seat) { seat.train(1); }, handed_over);
  ASSERT_TRUE(life.ended_well());
  for (const auto& ruling : life.rulings) ADD_FAILURE() << ruling;
  EXPECT_EQ(decode_rng(object_in(life, "mimo.a.rng_state/shard_0.1_1.2")).size(), 1U);
  const auto streams = decode_rng(object_in(life, "mimo.b.rng_state/shard_0.0_1.1"));
  ASSERT_EQ(streams.size(), 4U);
  std::set<std::uint64_t> seeds;
  for (std::int32_t dp = 0; dp < 4; ++dp) {
    HostRng fresh = HostRng::fresh(streams_seed(7, "b"), 0, 0, dp);
    fresh.advance();
    EXPECT_EQ(streams[static_cast<std::size_t>(dp)], fresh) << dp;
    seeds.insert(fresh.host.seed);
  }
  EXPECT_EQ(seeds.size(), 4U);
}

TEST(ModulesCheckpoint, each_dp_rank_takes_its_own_stream_again) {
  SimStore store;
  const auto saved = streams_of(store, by_dp("dp2", "tp2 dp2"), 3, false);
  JobConfig fresh = by_dp("dp2", "tp2 dp2");
  fresh.training.seed = 99;
  EXPECT_EQ(streams_of(store, fresh, 0, true), saved);
}

TEST(ModulesCheckpoint, streams_that_differ_by_dp_begin_anew_under_another_dp_and_it_is_said) {
  SimStore store;
  const auto saved = streams_of(store, by_dp("dp2", "tp2"), 3, false);
  std::vector<std::string> notes;
  const auto now = streams_of(store, by_dp("dp3", "tp2"), 0, true, &notes);
  for (std::int32_t r = 0; r < 3; ++r) {
    EXPECT_EQ(now.at(r), HostRng::fresh(streams_seed(7, "a"), 0, 0, r));
  }
  EXPECT_EQ(now.at(3), saved.at(2)) << "the other module's streams";
  EXPECT_EQ(now.at(4), saved.at(3));
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0], HasSubstr("mimo.a.rng_state"));
  EXPECT_THAT(notes[0], HasSubstr("start anew"));
}

TEST(ModulesCheckpoint, streams_come_back_of_modules_whose_tp_and_pp_stayed_and_of_them_alone) {
  const auto modules = [](const char* a, const char* b) {
    return job_of({module_on("a", "audio-tiny", a), module_on("b", "audio-tiny", b)});
  };
  SimStore store;
  const auto saved = streams_of(store, modules("tp2", "pp2"), 3, false);
  std::vector<std::string> notes;
  const auto now = streams_of(store, modules("tp2 dp2", "dp2"), 0, true, &notes);
  EXPECT_EQ(now.at(0), saved.at(0));
  EXPECT_EQ(now.at(1), saved.at(1));
  EXPECT_EQ(now.at(2), saved.at(0));
  EXPECT_EQ(now.at(4), HostRng::fresh(streams_seed(7, "b"), 0, 0));
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0], HasSubstr("the random states mimo.b.rng_state are of"));
}

// --- loads under other grids --------------------------------------------------------------------

struct Move {
  std::string what;
  std::vector<ModuleConfig> from;
  std::vector<ModuleConfig> to;
  bool bare = false;
  bool plain_first = false;
};

TEST(ModulesCheckpoint, a_load_under_other_grids_goes_on_as_if_nothing_had_happened) {
  const std::string dp = "dp_reshardable";
  const auto eyes = [](const char* layout, const std::vector<std::int32_t>& ranks = {},
                       const std::string& sharding = "fully_reshardable") {
    return module_on("eyes", "audio-tiny", layout, ranks, sharding);
  };
  const auto lm = [](const char* layout, const std::vector<std::int32_t>& ranks = {},
                     const std::string& sharding = "fully_reshardable") {
    return module_on("lm", "language-tiny", layout, ranks, sharding);
  };
  const std::vector<Move> moves = {
      {"the same", {eyes("tp2"), lm("tp2 pp2")}, {eyes("tp2"), lm("tp2 pp2")}},
      {"other sizes, another padding", {eyes("tp2"), lm("tp2 pp2")}, {eyes("dp3"), lm("tp4")}},
      {"to fewer rows of padding", {eyes("tp1"), lm("tp4")}, {eyes("tp1"), lm("tp1")}},
      {"to more rows of padding", {eyes("tp1"), lm("tp1")}, {eyes("tp1"), lm("tp3 dp2")}},
      {"another order", {eyes("tp2"), lm("tp2")}, {lm("pp2"), eyes("tp2")}},
      {"from side by side to colocated",
       {eyes("tp2"), lm("tp2")},
       {eyes("tp2", {1, 0}), lm("dp2", {0, 1})}},
      {"rank 0 has the language model alone",
       {eyes("tp2", {2, 3}), lm("tp2", {0, 1})},
       {eyes("tp2", {0, 1}), lm("tp2", {2, 3})}},
      {"each its own sharding",
       {eyes("dp2", {}, dp), lm("tp2 dp2", {}, "fsdp_dtensor")},
       {eyes("dp3"), lm("pp2", {}, dp)}},
      {"buckets under another dp",
       {eyes("tp2 dp2", {}, dp), lm("pp2 dp2", {}, dp)},
       {eyes("tp2", {}, dp), lm("pp2 dp3", {}, dp)}},
      {"from bare keys", {eyes("tp2"), lm("tp2")}, {eyes("dp2"), lm("tp2 pp2")}, true},
      {"from bare keys, buckets",
       {eyes("tp2", {}, dp), lm("tp2")},
       {eyes("tp2 dp2", {}, dp), lm("tp2", {}, dp)},
       true},
      {"groups in another order", {eyes("tp2"), lm("tp2")}, {eyes("tp2"), lm("dp2")}, false, true},
      {"a frozen module", {eyes("tp2"), lm("tp2")}, {eyes("dp2"), lm("dp2")}},
  };
  for (auto move : moves) {
    SCOPED_TRACE(move.what);
    if (move.what == "a frozen module") move.from[0].frozen = move.to[0].frozen = true;
    JobConfig config = job_of(move.from);
    if (move.bare) config.checkpoint.keys = KeyForm::kBare;
    const Life twin = trained_on(config, 5);
    SimStore store;
    const Life saved = saved_on(store, config, 3);
    JobConfig next = job_of(move.to, 99);
    next.checkpoint.plain_first = move.plain_first;
    EXPECT_EQ(first_difference(resumed_on(store, next, 0).state, saved.state), "");
    const Life later = resumed_on(store, next, 2);
    ASSERT_TRUE(later.ended_well()) << later.why();
    for (const auto& ruling : later.rulings) ADD_FAILURE() << ruling;
    EXPECT_EQ(first_difference(later.state, twin.state), "");
    for (const auto& records : later.records) {
      EXPECT_EQ(records, std::vector<StepRecord>(twin.records.front().begin() + 3,
                                                 twin.records.front().end()));
    }
  }
}

TEST(ModulesCheckpoint, rows_that_pad_a_vocabulary_are_zeros_after_a_load_under_another_tp) {
  SimStore store;
  saved_on(store, job_of({module_on("lm", "language-tiny", "tp2")}), 2);
  const Life now =
      resumed_on(store, job_of({module_on("lm", "language-tiny", "tp3")}, 99), 0, live);
  ASSERT_TRUE(now.ended_well());
  const auto* words = now.state.tensor("mimo.lm.embedding.word_embeddings.weight");
  ASSERT_NE(words, nullptr);
  EXPECT_EQ(words->shape[0], 75);
  const ByteSpan tail = ByteSpan(words->data).subspan(words->data.size() / 75 * 61);
  EXPECT_TRUE(std::all_of(tail.begin(), tail.end(), [](std::byte b) { return b == std::byte{0}; }));
}

TEST(ModulesCheckpoint, loading_twice_counts_the_schedule_once) {
  const JobConfig config = job_of({module_on("a", "audio-tiny", "tp2")});
  const Life twin = trained_on(config, 4);
  SimStore store;
  saved_on(store, config, 3);
  const Life later = live_on(store, config, [](const Seat& seat) {
    seat.load();
    seat.load();
    seat.train(1);
  });
  ASSERT_TRUE(later.ended_well());
  EXPECT_EQ(first_difference(later.state, twin.state), "");
}

// --- what is left behind ------------------------------------------------------------------------

const std::vector<ModuleConfig>& two() {
  static const std::vector<ModuleConfig> all = {module_on("a", "audio-tiny", "tp2"),
                                                module_on("b", "language-tiny", "tp2")};
  return all;
}

struct Kept {
  bool moments = true;
  bool masters = true;  ///< the stored masters, not ones made from bf16 weights
  bool schedule = true;
  bool random = true;
  std::int64_t iteration = 3;
};

bool rounded(ByteSpan masters) {
  for (std::size_t i = 0; i < masters.size(); i += 4) {
    if ((load_le<std::uint32_t>(masters.subspan(i)) & 0xffffU) != 0) return false;
  }
  return true;
}

void expect_kept(const Life& now, const Life& saved, const Kept& kept) {
  for (const auto& tensor : now.state.tensors) {
    SCOPED_TRACE(tensor.key);
    ASSERT_NE(saved.state.tensor(tensor.key), nullptr);
    const GlobalTensor& stored = *saved.state.tensor(tensor.key);
    if (tensor.key.find("exp_avg") != std::string::npos) {
      const bool zero = std::all_of(tensor.data.begin(), tensor.data.end(),
                                    [](std::byte b) { return b == std::byte{0}; });
      EXPECT_EQ(tensor.data == stored.data, kept.moments);
      EXPECT_EQ(zero, !kept.moments);
    } else if (tensor.key.find("optimizer") != std::string::npos) {
      EXPECT_EQ(rounded(tensor.data), !kept.masters);
      EXPECT_TRUE(!kept.masters || tensor.data == stored.data);
    } else {
      EXPECT_TRUE(tensor.data == stored.data) << "weights are always loaded";
    }
  }
  const Progress progress = decode_common(now.state.common).progress;
  EXPECT_EQ(progress.iteration, kept.iteration);
  EXPECT_EQ(progress.consumed_samples, kept.iteration * progress.global_batch_size);
  EXPECT_EQ(progress.schedule.num_steps, kept.schedule ? 3 * progress.global_batch_size : 0);
  for (const auto* module : {"a", "b"}) {
    const std::string name(module);
    const std::string settings = "mimo." + name + ".optimizer.mimo." + name + ".";
    const Value groups = object_in(now, settings + "param_groups/shard_0_1");
    ASSERT_NE(groups.as<List>(), nullptr);
    for (const auto& group : *groups.as<List>()) {
      EXPECT_EQ(*group.find("step"), Value(kept.moments ? 3 : 0));
      EXPECT_EQ(*group.find("lr")->as<double>(),
                progress.schedule.lr() * *group.find("lr_mult")->as<double>());
    }
    if (kept.moments) {
      EXPECT_EQ(object_in(now, settings + "grad_scaler/shard_0_1"),
                object_in(saved, settings + "grad_scaler/shard_0_1"));
    }
    for (int tp = 0; tp < 2; ++tp) {
      const std::string key = "mimo." + name + ".rng_state/shard_0." + std::to_string(tp) + "_1.2";
      const Value fresh = encode(HostRng::fresh(streams_seed(7, name), 0, tp));
      EXPECT_EQ(object_in(now, key), kept.random ? object_in(saved, key) : fresh) << key;
    }
  }
}

TEST(ModulesCheckpoint, a_table_of_what_is_saved_and_what_is_left_behind) {
  struct Row {
    std::string what;
    SaveParts parts;
    LoadChoice choice;
    bool release;
    Kept kept;
    std::vector<std::string> notes;
  };
  const Kept weights_alone{false, false, false, false, 0};
  const std::vector<Row> rows = {
      {"everything", {}, {}, false, {}, {}},
      {"no-load-optim",
       {},
       {.optimizer = false},
       false,
       {.moments = false, .masters = false, .schedule = false},
       {"optimizer state is left behind"}},
      {"no-load-scheduler",
       {},
       {.schedule = false},
       false,
       {.schedule = false},
       {"schedule is left"}},
      {"no-load-rng", {}, {.random = false}, false, {.random = false}, {"random states are left"}},
      {"no-save-optim",
       {.optimizer = false},
       {},
       false,
       {.moments = false, .masters = false, .schedule = false},
       {"has no optimizer state"}},
      {"no-save-rng", {.random = false}, {}, false, {.random = false}, {"has no random states"}},
      {"finetune", {}, {.finetune = true}, false, weights_alone, {"the job is at iteration 0"}},
      {"release", {}, {}, true, weights_alone, {"the job is at iteration 0"}},
      {"no-save-optim, no-load-rng",
       {.optimizer = false},
       {.random = false},
       false,
       {.moments = false, .masters = false, .schedule = false, .random = false},
       {"has no optimizer state", "random states are left"}},
      {"finetune of weights alone",
       {.optimizer = false, .random = false},
       {.finetune = true},
       false,
       weights_alone,
       {"the job is at iteration 0"}},
  };
  for (const auto* sharding : {"fully_reshardable", "dp_reshardable", "fsdp_dtensor"}) {
    auto modules = two();
    for (auto& module : modules) module.optimizer_sharding = sharding_named(sharding);
    for (const auto& row : rows) {
      SCOPED_TRACE(std::string(sharding) + ", " + row.what);
      SimStore store;
      const Life saved = saved_on(store, job_of(modules), 3, row.parts);
      JobConfig config = job_of(modules, 99);
      config.load = row.choice;
      const Life now = live_on(store, config, [&](const Seat& seat) { seat.load(row.release); });
      ASSERT_TRUE(now.ended_well()) << now.why();
      for (const auto& ruling : now.rulings) ADD_FAILURE() << ruling;
      expect_kept(now, saved, row.kept);
      for (const auto& notes : now.notes) {
        EXPECT_EQ(notes, now.notes.front()) << "must be the same on all ranks";
        for (const auto& words : row.notes) {
          EXPECT_THAT(notes, testing::Contains(HasSubstr(words)));
        }
      }
      EXPECT_EQ(row.notes.empty(), now.notes.front().empty());
    }
  }
}

// --- modules that come and go -------------------------------------------------------------------

TEST(ModulesCheckpoint, a_module_that_is_added_begins_anew_and_the_others_go_on) {
  SimStore store;
  const Life saved = saved_on(store, job_of({two()[0]}), 3);
  JobConfig config = job_of(two(), 99);
  config.load.adds = {"b"};
  const Life now = resumed_on(store, config, 0);
  ASSERT_TRUE(now.ended_well()) << now.why();
  const Life fresh = trained_on(job_of(two()), 0);
  for (const auto& tensor : now.state.tensors) {
    const bool stored = tensor.key.find("mimo.a.") != std::string::npos;
    const GlobalState& from = stored ? saved.state : fresh.state;
    EXPECT_TRUE(tensor.data == from.tensor(tensor.key)->data) << tensor.key;
  }
  EXPECT_EQ(object_in(now, "mimo.b.rng_state/shard_0.0_1.2"),
            encode(HostRng::fresh(streams_seed(7, "b"), 0, 0)));
  EXPECT_EQ(object_in(now, "mimo.a.rng_state/shard_0.0_1.2"),
            object_in(saved, "mimo.a.rng_state/shard_0.0_1.2"));
  const Value groups = object_in(now, "mimo.b.optimizer.mimo.b.param_groups/shard_0_1");
  ASSERT_NE(groups.as<List>(), nullptr);
  const Schedule schedule = decode_common(now.state.common).progress.schedule;
  for (const auto& group : *groups.as<List>()) {
    EXPECT_EQ(*group.find("step"), Value(0));
    EXPECT_EQ(*group.find("lr"), Value(schedule.lr())) << "from the schedule of the continuing job";
  }
  EXPECT_THAT(now.notes.front(),
              testing::ElementsAre("the checkpoint has no module b: it begins anew"));
}

TEST(ModulesCheckpoint, a_module_that_is_dropped_is_left_behind_whole) {
  for (const bool bare : {false, true}) {
    for (const auto* sharding : {"fully_reshardable", "dp_reshardable"}) {
      auto modules = two();
      modules[1].optimizer_sharding = sharding_named(sharding);
      SimStore store;
      JobConfig before = job_of(modules);
      if (bare) before.checkpoint.keys = KeyForm::kBare;
      const Life saved = saved_on(store, before, 3);
      JobConfig config = job_of({two()[0]}, 99);
      config.load.drops = {"b"};
      const Life now = resumed_on(store, config, 0);
      ASSERT_TRUE(now.ended_well()) << now.why();
      for (const auto& tensor : now.state.tensors) {
        EXPECT_TRUE(tensor.data == saved.state.tensor(tensor.key)->data) << tensor.key;
      }
      EXPECT_THAT(now.notes.front(),
                  testing::ElementsAre("the module b of the checkpoint is left behind"));
    }
  }
}

}  // namespace
}  // namespace reprise::sim
