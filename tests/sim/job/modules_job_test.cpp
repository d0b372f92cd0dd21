// Tests that modules train to the same result, bit for bit, whichever ranks they are on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/base/codes.hpp"
#include "tests/sim/job/module_worlds.hpp"

namespace reprise::sim::modules_job_test {
namespace {

using testing::HasSubstr;

constexpr int kSteps = 5;

// --- ranks of modules ---------------------------------------------------------------------------

struct Grids {
  std::string what;
  std::vector<ModuleConfig> modules;
};

const std::vector<Grids>& two_modules() {
  static const std::vector<Grids> all = {
      {"disjoint",
       {module_on("eyes", "audio-tiny", "tp2"), module_on("lm", "hybrid-tiny", "tp2 pp2")}},
      {"another order",
       {module_on("lm", "hybrid-tiny", "pp4"), module_on("eyes", "audio-tiny", "tp1")}},
      {"interleaved ranks",
       {module_on("eyes", "audio-tiny", "dp2", {3, 1}),
        module_on("lm", "hybrid-tiny", "tp2", {0, 2})}},
      {"colocated",
       {module_on("eyes", "audio-tiny", "tp2 dp2", {0, 1, 2, 3}),
        module_on("lm", "hybrid-tiny", "pp2 dp2", {3, 2, 1, 0}, "dp_reshardable")}},
      {"cp2 in one",
       {module_on("eyes", "audio-tiny", "cp2"), module_on("lm", "hybrid-tiny", "tp3")}},
      {"virtual stages",
       {module_on("eyes", "audio-tiny", "pp2", {}, "fsdp_dtensor"),
        module_on("lm", "hybrid-tiny", "pp2 vpp2 dp2", {}, "fully_sharded_model_space")}},
  };
  return all;
}

std::vector<ModuleConfig> on_one_rank() {
  return {module_on("eyes", "audio-tiny", "tp1", {0}), module_on("lm", "hybrid-tiny", "tp1", {0})};
}

TEST(ModulesJob, state_and_records_are_equal_wherever_two_modules_are_placed) {
  JobConfig alone = job_of(on_one_rank());
  alone.training.clip_grad = 1;
  const Life one = trained_on(alone, kSteps);
  ASSERT_TRUE(one.findings.empty());
  for (const auto& row : two_modules()) {
    SCOPED_TRACE(row.what);
    JobConfig config = job_of(row.modules);
    config.training.clip_grad = 1;
    const Life many = trained_on(config, kSteps);
    ASSERT_TRUE(many.ended_well());
    for (const auto& finding : many.findings) ADD_FAILURE() << finding;
    EXPECT_EQ(first_difference(many.state, one.state), "");
    for (const auto& records : many.records) EXPECT_EQ(records, one.records.front());
  }
}

TEST(ModulesJob, three_modules_with_experts_train_alike_on_many_ranks_and_one) {
  const auto modules = [](const char* a, const char* b, const char* c, bool together) {
    const std::vector<std::int32_t> ranks = together ? std::vector{0} : std::vector<std::int32_t>{};
    return job_of({module_on("a", "vision-tiny", a, ranks), module_on("b", "audio-tiny", b, ranks),
                   module_on("c", "language-moe", c, ranks)});
  };
  const Life one = trained_on(modules("tp1", "tp1", "tp1", true), 3);
  const Life many = trained_on(modules("tp2", "dp2", "tp2 ep2 dp2", false), 3);
  for (const auto& finding : many.findings) ADD_FAILURE() << finding;
  EXPECT_EQ(first_difference(many.state, one.state), "");
  for (const auto& records : many.records) EXPECT_EQ(records, one.records.front());
  EXPECT_NE(many.state.object("mimo.c.optimizer.mimo.c.1.param_groups/shard_0_1"), nullptr)
      << "a chain of two";
}

TEST(ModulesJob, a_record_has_the_norm_of_all_modules_and_each_ones_scale) {
  auto modules = on_one_rank();
  modules[0].loss_scale.scale = 256;
  modules[1].loss_scale.scale = 1024;
  const auto records = trained_on(job_of(modules), 1).records.front();
  EXPECT_EQ(records[0].scales, (std::vector<double>{256, 1024}));
  EXPECT_EQ(records[0].loss_scale, 256);
  EXPECT_GT(records[0].gradient_norm, 0);
  std::reverse(modules.begin(), modules.end());
  EXPECT_EQ(trained_on(job_of(modules), 1).records.front(), records);
}

TEST(ModulesJob, the_norm_counts_all_modules_gradients_but_frozen_ones) {
  const auto norm_of = [](bool a, bool b) {
    auto modules = on_one_rank();
    modules[0].frozen = a;
    modules[1].frozen = b;
    return trained_on(job_of(modules), 1).records.front().front().gradient_norm;
  };
  const double both = norm_of(false, false);
  const double one = norm_of(false, true);
  const double other = norm_of(true, false);
  EXPECT_GT(both, std::max(one, other));
  EXPECT_NEAR(both * both, one * one + other * other, 1e-9 * both * both);
}

TEST(ModulesJob, clipping_goes_by_the_norm_of_all_modules_together) {
  JobConfig config = job_of(on_one_rank());
  const Life whole = trained_on(config, 1);
  const double norm = whole.records.front().front().gradient_norm;
  config.training.clip_grad = norm * 1.5;
  EXPECT_EQ(first_difference(trained_on(config, 1).state, whole.state), "") << "nothing to clip";
  config.training.clip_grad = norm / 2;
  const Life clipped = trained_on(config, 1);
  EXPECT_EQ(clipped.records.front().front().gradient_norm, norm) << "before clipping";
  std::size_t moved = 0;
  for (const auto* key : {"mimo.eyes.", "mimo.lm."}) {
    for (std::size_t t = 0; t < whole.state.tensors.size(); ++t) {
      const auto& tensor = whole.state.tensors[t];
      const bool of_module = tensor.key.find(key) != std::string::npos;
      if (of_module && tensor.data != clipped.state.tensors[t].data) {
        ++moved;
        break;
      }
    }
  }
  EXPECT_EQ(moved, 2U) << "both modules' moments must use clipped gradients";
}

TEST(ModulesJob, a_frozen_module_stays_as_it_began_and_has_no_optimizer) {
  auto modules = two_modules().front().modules;
  modules[0].frozen = true;
  const Life before = trained_on(job_of(modules), 0);
  const Life after = trained_on(job_of(modules), 3);
  for (std::size_t t = 0; t < after.state.tensors.size(); ++t) {
    const auto& tensor = after.state.tensors[t];
    if (tensor.key.find("mimo.eyes.") == std::string::npos) continue;
    EXPECT_TRUE(tensor.data == before.state.tensors[t].data) << tensor.key;
    EXPECT_EQ(tensor.key.find("optimizer"), std::string::npos) << tensor.key;
  }
  for (const auto& object : after.state.objects) {
    EXPECT_FALSE(object.key.starts_with("mimo.eyes.optimizer")) << object.key;
  }
}

// --- refused jobs --------------------------------------------------------------------------------

TEST(ModulesJob, grids_that_do_not_make_a_job_are_refused_on_every_rank) {
  struct Row {
    std::vector<ModuleConfig> modules;
    std::int32_t world;
    std::string says;
  };
  const std::vector<Row> rows = {
      {{module_on("a", "audio-tiny", "tp2", {0, 1}), module_on("b", "audio-tiny", "tp2", {1, 2})},
       3,
       "modules a and b share the ranks 1"},
      {{module_on("a", "audio-tiny", "tp2", {0, 1}), module_on("b", "audio-tiny", "tp1", {3})},
       4,
       "no module is placed on the ranks 2"},
      {{module_on("a", "audio-tiny", "tp2", {0, 1}), module_on("b", "audio-tiny", "tp2", {2, 3})},
       3,
       "need 4 ranks, and there are 3"},
  };
  for (const auto& row : rows) {
    JobConfig config;
    config.makeup.modules = row.modules;
    SimStore store;
    World world({.world_size = row.world}, store);
    const auto result =
        world.run([&](Ports& ports, GlobalRank) { const TrainingJob job(config, ports.fabric); });
    for (const auto& rank : result.ranks) {
      ASSERT_TRUE(rank.error.has_value()) << row.says;
      EXPECT_EQ(rank.error->code(), Code::kLayoutMismatch);
      EXPECT_THAT(rank.error->message(), HasSubstr(row.says));
    }
  }
}

// --- overflows ----------------------------------------------------------------------------------

/// A module's loss scale and growth tracker, and the steps of its parameter groups.
struct Scaler {
  double scale = 0;
  std::int64_t tracker = 0;
  std::set<std::int64_t> steps;
};

Scaler scaler_of(const GlobalState& state, const std::string& module) {
  const std::string key = "mimo." + module + ".optimizer.mimo." + module + ".";
  const auto* scaler = state.object(key + "grad_scaler/shard_0_1");
  const auto* groups = state.object(key + "param_groups/shard_0_1");
  if (scaler == nullptr || groups == nullptr) {
    ADD_FAILURE() << "no settings of " << module;
    return {};
  }
  Scaler found{*scaler->value.find("scale")->as<double>(),
               *scaler->value.find("growth_tracker")->as<std::int64_t>(),
               {}};
  for (const auto& group : *groups->value.as<List>()) {
    found.steps.insert(*group.find("step")->as<std::int64_t>());
  }
  return found;
}

std::vector<ModuleConfig> one_overflows(bool first) {
  auto modules = two_modules().front().modules;
  modules[first ? 0 : 1].loss_scale = {.scale = 65536, .growth_interval = 9};
  modules[first ? 1 : 0].loss_scale = {.scale = 1024, .growth_interval = 9};
  return modules;
}

TEST(ModulesJob, an_overflow_skips_all_updates_and_halves_only_its_own_scale) {
  for (const bool first : {true, false}) {
    const JobConfig config = job_of(one_overflows(first));
    const Life before = trained_on(config, 0);
    const Life after = trained_on(config, 1);
    for (const auto& records : after.records) {
      ASSERT_EQ(records.size(), 1U);
      EXPECT_TRUE(records[0].overflow);
      EXPECT_FALSE(records[0].skipped);
      EXPECT_EQ(records[0].gradient_norm, 0);
    }
    for (std::size_t t = 0; t < after.state.tensors.size(); ++t) {
      EXPECT_TRUE(after.state.tensors[t].data == before.state.tensors[t].data)
          << after.state.tensors[t].key;
    }
    const Scaler halved = scaler_of(after.state, first ? "eyes" : "lm");
    const Scaler kept = scaler_of(after.state, first ? "lm" : "eyes");
    EXPECT_EQ(halved.scale, 32768);
    EXPECT_EQ(halved.tracker, 0);
    EXPECT_EQ(kept.scale, 1024);
    EXPECT_EQ(kept.tracker, 1) << "its own gradients were finite";
    EXPECT_EQ(halved.steps, std::set<std::int64_t>{0});
    EXPECT_EQ(kept.steps, std::set<std::int64_t>{0});
    const TrainingProgress progress = decode_common(after.state.common).progress;
    EXPECT_EQ(progress.iteration, 1);
    EXPECT_EQ(progress.consumed_samples, progress.global_batch_size);
    EXPECT_EQ(progress.schedule.num_steps, 0);
  }
}

TEST(ModulesJob, the_step_after_an_overflow_updates_all_at_the_rate_now_due) {
  const JobConfig config = job_of(one_overflows(true));
  const Life life = trained_on(config, 2);
  const auto& records = life.records.front();
  EXPECT_FALSE(records[1].overflow);
  EXPECT_EQ(records[1].lr, records[0].lr);
  EXPECT_EQ(records[1].scales, (std::vector<double>{32768, 1024}));
  for (const auto* module : {"eyes", "lm"}) {
    EXPECT_EQ(scaler_of(life.state, module).steps, std::set<std::int64_t>{1});
  }
  const TrainingProgress progress = decode_common(life.state.common).progress;
  EXPECT_EQ(progress.iteration, 2);
  EXPECT_EQ(progress.consumed_samples, 2 * progress.global_batch_size);
  EXPECT_EQ(progress.schedule.num_steps, progress.global_batch_size);
}

TEST(ModulesJob, an_overflow_right_before_a_save_is_gone_on_from) {
  for (const bool first : {true, false}) {
    const JobConfig config = job_of(one_overflows(first));
    const Life reference = trained_on(config, 4);
    SimStore store;
    saved_on(store, config, 1);
    JobConfig fresh = config;
    fresh.training.seed = 99;
    const Life later = resumed_on(store, fresh, 3);
    ASSERT_TRUE(later.ended_well());
    EXPECT_EQ(first_difference(later.state, reference.state), "");
    EXPECT_EQ(later.records.front(), std::vector<StepRecord>(reference.records.front().begin() + 1,
                                                             reference.records.front().end()));
  }
}

TEST(ModulesJob, scales_grow_by_each_modules_own_interval) {
  auto modules = on_one_rank();
  modules[0].loss_scale = {.scale = 4, .growth_interval = 1};
  modules[1].loss_scale = {.scale = 8, .growth_interval = 2};
  const auto records = trained_on(job_of(modules), 3).records.front();
  EXPECT_EQ(records[0].scales, (std::vector<double>{4, 8}));
  EXPECT_EQ(records[1].scales, (std::vector<double>{8, 8}));
  EXPECT_EQ(records[2].scales, (std::vector<double>{16, 16}));
}

// --- padded vocabularies ------------------------------------------------------------------------

bool is_vocabulary(const GlobalTensor& tensor) {
  return tensor.key.find("word_embeddings") != std::string::npos ||
         tensor.key.find("output_layer.weight") != std::string::npos;
}

constexpr std::int64_t kWords = 61;  // words in the vocabulary of language-tiny and hybrid-tiny

bool all_zero(ByteSpan bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

TEST(ModulesJob, the_tail_of_a_padded_vocabulary_stays_zero_under_every_tp) {
  const std::pair<const char*, std::int64_t> rows[] = {
      {"tp1", 65}, {"tp2", 70}, {"tp3", 75}, {"tp4", 80}, {"tp2 dp2", 70}, {"tp2 pp2", 70}};
  for (const auto& [layout, padded] : rows) {
    SCOPED_TRACE(layout);
    const JobConfig config = job_of({module_on("lm", "hybrid-tiny", layout)});
    const Life life = trained_on(config, 3, live);
    for (const auto& finding : life.findings) ADD_FAILURE() << finding;
    std::size_t vocabularies = 0;
    for (const auto& tensor : life.state.tensors) {
      if (!is_vocabulary(tensor)) continue;
      ++vocabularies;
      EXPECT_EQ(tensor.shape[0], padded) << tensor.key;
      const std::size_t row = tensor.data.size() / static_cast<std::size_t>(padded);
      const std::size_t live_bytes = row * static_cast<std::size_t>(kWords);
      EXPECT_TRUE(all_zero(ByteSpan(tensor.data).subspan(live_bytes))) << tensor.key;
      EXPECT_FALSE(all_zero(ByteSpan(tensor.data).subspan(live_bytes - row, row)))
          << tensor.key << " trains the last word";
    }
    EXPECT_EQ(vocabularies, 8U) << "two, each with three slots";
  }
}

TEST(ModulesJob, in_model_space_a_vocabulary_has_its_words_alone) {
  const Life life = trained_on(job_of({module_on("lm", "hybrid-tiny", "tp3")}), 1);
  std::size_t vocabularies = 0;
  for (const auto& tensor : life.state.tensors) {
    if (!is_vocabulary(tensor)) continue;
    ++vocabularies;
    EXPECT_EQ(tensor.shape[0], kWords);
  }
  EXPECT_EQ(vocabularies, 8U);
}

TEST(ModulesJob, padding_adds_nothing_to_loss_norm_or_zeros) {
  const auto records = [](const char* layout) {
    return trained_on(job_of({module_on("lm", "hybrid-tiny", layout)}), 2).records.front();
  };
  for (const char* layout : {"tp2", "tp3", "tp4"}) EXPECT_EQ(records(layout), records("tp1"));
}

// --- leaf layers --------------------------------------------------------------------------------

std::set<std::string> leaf_layers;  // leaf layers that were called

TEST(ModulesJob, leaf_layers_are_called_with_the_groups_of_their_module) {
  leaf_layers.clear();
  JobPolicy policy;
  policy.module.leaf_layer = [](const LeafLayer& layer) {
    leaf_layers.insert(std::string(layer.key));
    return groups_it_is_given(layer);
  };
  const JobConfig config = job_of({module_on("v", "vision-tiny", "tp2", {3, 1}),
                                   module_on("lm", "hybrid-tiny", "tp2 dp2", {0, 2, 5, 4})});
  SimStore store;
  const Life life = live_on(
      store, config, [](const Seat& seat) { seat.train(1); }, handed_over, policy);
  ASSERT_TRUE(life.ended_well());
  for (const auto& finding : life.findings) ADD_FAILURE() << finding;
  for (const auto& key : leaf_layers) {
    EXPECT_TRUE(key.find(".mixer.") != std::string::npos || key == "mimo.v.embedder.weight" ||
                key == "mimo.v.position_embeddings" || key == "mimo.v.class_token")
        << key;
  }
  EXPECT_EQ(leaf_layers.size(), 3U + 3 * 9) << "three of the encoder, nine of each of three mixers";
}

TEST(ModulesJob, a_leaf_layer_that_asks_for_global_groups_finds_none) {
  JobPolicy policy;
  policy.module.leaf_layer = [](const LeafLayer& layer) {
    return layer.registry.groups(layer.key);
  };
  const JobConfig config =
      job_of({module_on("v", "vision-tiny", "tp2"), module_on("lm", "hybrid-tiny", "tp2")});
  SimStore store;
  const Life life = live_on(
      store, config, [](const Seat&) {}, handed_over, policy);
  for (const auto& error : life.errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_TRUE(error->code() == passed_on::kGlobalFallback || error->code() == Code::kPeerFailed)
        << error->what();
  }
  EXPECT_EQ(life.errors[0]->code(), passed_on::kGlobalFallback) << life.why();
}

}  // namespace
}  // namespace reprise::sim::modules_job_test
