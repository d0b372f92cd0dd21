// Tests what a job of several modules loads from a checkpoint if the grids differ, if some of the
// state is not stored or not requested, or if modules are added or dropped.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/job/module_worlds.hpp"

namespace reprise::sim::modules_checkpoint_test {
namespace {

using testing::HasSubstr;

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
    const Life reference = trained_on(config, 5);
    SimStore store;
    const Life saved = saved_on(store, config, 3);
    JobConfig next = job_of(move.to, 99);
    next.checkpoint.plain_first = move.plain_first;
    EXPECT_EQ(first_difference(resumed_on(store, next, 0).state, saved.state), "");
    const Life later = resumed_on(store, next, 2);
    ASSERT_TRUE(later.ended_well()) << later.why();
    for (const auto& finding : later.findings) ADD_FAILURE() << finding;
    EXPECT_EQ(first_difference(later.state, reference.state), "");
    for (const auto& records : later.records) {
      EXPECT_EQ(records, std::vector<StepRecord>(reference.records.front().begin() + 3,
                                                 reference.records.front().end()));
    }
  }
}

TEST(ModulesCheckpoint, padding_of_a_vocabulary_is_zero_after_a_load_under_other_tp) {
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
  const Life reference = trained_on(config, 4);
  SimStore store;
  saved_on(store, config, 3);
  const Life later = live_on(store, config, [](const Seat& seat) {
    seat.load();
    seat.load();
    seat.train(1);
  });
  ASSERT_TRUE(later.ended_well());
  EXPECT_EQ(first_difference(later.state, reference.state), "");
}

// --- parts that are left out --------------------------------------------------------------------

const std::vector<ModuleConfig>& two() {
  static const std::vector<ModuleConfig> all = {module_on("a", "audio-tiny", "tp2"),
                                                module_on("b", "language-tiny", "tp2")};
  return all;
}

struct Kept {
  bool moments = true;
  bool masters = true;  ///< if false, masters are made from the bf16 weights
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
  const TrainingProgress progress = decode_common(now.state.common).progress;
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
      for (const auto& finding : now.findings) ADD_FAILURE() << finding;
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

// --- modules that are added or dropped ----------------------------------------------------------

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
}  // namespace reprise::sim::modules_checkpoint_test
