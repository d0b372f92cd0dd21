#include "sim/job/job.hpp"

#include <gtest/gtest.h>

#include "core/adapters/local/solo_fabric.hpp"
#include "core/base/codes.hpp"
#include "tests/sim/job/job_worlds.hpp"

namespace reprise::sim {
namespace {

constexpr int kSteps = 9;  // enough for two overflows

const std::vector<std::string> kJobLayouts = {
    "tp2", "tp4", "dp2", "tp2 dp2", "tp3", "dp3 tp2", "cp2 dp2", "dp5", "tp2 dp2 order dp-tp"};

TEST(Job, TheStateAndTheLossesAreTheSameUnderEveryLayout) {
  const Trained one = trained(parse_layout("tp1"), kSteps);
  ASSERT_EQ(one.records.size(), static_cast<std::size_t>(kSteps));
  EXPECT_NE(one.digest, trained(parse_layout("tp1"), kSteps - 1).digest);
  for (const auto& text : kJobLayouts) {
    SCOPED_TRACE(text);
    const Trained many = trained(parse_layout(text), kSteps);
    EXPECT_EQ(many.records, one.records);
    EXPECT_EQ(difference(many.state, one.state), "");
    EXPECT_EQ(many.digest, one.digest);
    EXPECT_TRUE(many.findings.empty());
  }
}

TEST(Job, LossesScalesAndRatesMoveAndOverflowsSkipTheUpdateAlone) {
  const auto records = trained(parse_layout("tp1"), kSteps).records;
  int overflows = 0;
  for (std::size_t i = 1; i < records.size(); ++i) {
    EXPECT_NE(records[i].loss, records[i - 1].loss);
    EXPECT_EQ(records[i].step.value, static_cast<std::int64_t>(i) + 1);
    if (!records[i].overflow) continue;
    ++overflows;
    ASSERT_LT(i + 1, records.size());
    EXPECT_EQ(records[i + 1].lr, records[i].lr);
    EXPECT_EQ(records[i + 1].loss_scale, records[i].loss_scale / 2);
  }
  EXPECT_EQ(overflows, 2);
}

TEST(Job, ALoadUnderAnotherLayoutGoesOnAsIfNothingHadHappened) {
  const Trained saved = trained(parse_layout("tp2 dp2"), 5);
  const Trained reference = trained(parse_layout("tp1"), kSteps);
  for (const auto& text : {"tp4", "tp2 dp2", "dp3", "tp1"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(difference(resumed(saved.state, parse_layout(text), 0).state, saved.state), "");
    const Trained later = resumed(saved.state, parse_layout(text), kSteps - 5);
    EXPECT_EQ(difference(later.state, reference.state), "");
    EXPECT_EQ(later.records,
              std::vector<StepRecord>(reference.records.begin() + 5, reference.records.end()));
  }
}

TEST(Job, RandomStatesComeBackUnderTheSameTpAndStartAnewUnderAnother) {
  const Trained saved = trained(parse_layout("tp2 dp2"), 3);
  const Trained same = resumed(saved.state, parse_layout("tp2"), 0);
  ASSERT_EQ(same.state.objects.size(), 2U);
  for (const auto& object : same.state.objects) {
    EXPECT_EQ(object.value, saved.state.object(object.key)->value);
  }
  SoloFabric solo;
  TrainingJob job({.training = {.seed = 3}}, solo);
  const auto request = job.load_request(&saved.state.common);
  EXPECT_TRUE(request.wanted.objects.empty());
  EXPECT_EQ(request.excused, std::vector<std::string>{"rng_state"});
  EXPECT_EQ(request.notes.size(), 1U);
}

/// For each leaf value in `value`: changes it, calls `visit`, and restores it.
void for_each_change(Value& value, const std::string& path,
                     const std::function<void(const std::string&)>& visit) {
  if (auto* dict = value.as<Dict>()) {
    for (auto& [key, entry] : *dict)
      for_each_change(entry, path + '.' + *key.as<std::string>(), visit);
    return;
  }
  List* items = value.as<List>();
  if (auto* tuple = value.as<Tuple>()) items = &tuple->items;
  if (items != nullptr) {
    for (auto& item : *items) for_each_change(item, path + "[]", visit);
    return;
  }
  const Value original = value;
  if (const auto* flag = value.as<bool>()) value = !*flag;
  if (const auto* number = value.as<std::int64_t>()) value = *number + 1;
  if (const auto* number = value.as<double>()) value = *number == 0 ? 0.5 : *number * 2;
  if (const auto* text = value.as<std::string>()) value = *text == "linear" ? "constant" : "linear";
  visit(path);
  value = original;
}

bool layout_says(const std::string& path) {
  return path.find("_parallel_size") != std::string::npos || path.ends_with("rank_order") ||
         path.ends_with("num_distributed_optimizer_instances");
}

TEST(Job, EachPersistedScalarThatIsCorruptedAtLoadIsSeenLater) {
  Trained saved = trained(parse_layout("tp1"), 5);
  const Trained reference = trained(parse_layout("tp1"), 45);  // trained past the end of the decays
  int changes = 0;
  for_each_change(saved.state.common, "", [&](const std::string& path) {
    if (layout_says(path) || path.starts_with(".reprise.parent") || path == ".reprise.engine") {
      return;
    }
    SCOPED_TRACE(path);
    ++changes;
    try {
      bool rejected = false;  // true if the job itself rejected a result
      const Trained later = run_jobs(
          {.makeup = {.layout = parse_layout("tp1")}, .training = {.seed = 1234}}, {},
          [&](TrainingJob& job, auto& /*records*/) {
            load_from(job, saved.state);
            for (int i = 0; i < 40 && !rejected; ++i) rejected = job.advance().exit.has_value();
          },
          &TrainingJob::model_space);
      Trained without_values = later;  // so that only the effects of the values are compared
      without_values.state.common = reference.state.common;
      EXPECT_TRUE(rejected || !difference(without_values.state, reference.state).empty());
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == passed_on::kForeignCheckpoint ||
                  error.code() == Code::kUnsupported || error.code() == Code::kUsage)
          << error.what();
    }
  });
  EXPECT_GT(changes, 30);
}

TEST(Job, OneBitOfAnyTensorThatIsCorruptedAtLoadIsSeenAtTheNextStep) {
  Trained saved = trained(parse_layout("tp1"), 5);
  const Trained reference = trained(parse_layout("tp1"), 6);
  for (auto& tensor : saved.state.tensors) {
    SCOPED_TRACE(tensor.key);
    tensor.data.back() ^= std::byte{0x40};
    try {
      EXPECT_NE(difference(resumed(saved.state, parse_layout("tp1"), 1).state, reference.state),
                "");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), passed_on::kStaleDerived) << error.what();
    }
    tensor.data.back() ^= std::byte{0x40};
  }
}

TEST(Job, RefusesWhatItCannotBe) {
  SoloFabric solo;
  const auto code_of = [&solo](const JobConfig& config) {
    try {
      TrainingJob job(config, solo);
    } catch (const Error& error) {
      return error.code();
    }
    return Code::kInternal;
  };
  EXPECT_EQ(code_of({.makeup = {.layout = {.tp = 2}}}), Code::kLayoutMismatch);
  EXPECT_EQ(code_of({.makeup = {.model = "gpt-tyni"}}), Code::kUsage);
}

// --- experts, stages, shardings -----------------------------------------------------------------

/// A model with a layout, a sharding, and the checkpoint's shard_dim.
struct Case {
  const char* model;
  const char* layout;
  const char* sharding = "fully_reshardable";
  std::size_t dim = 0;
};

std::ostream& operator<<(std::ostream& out, const Case& row) {
  return out << row.model << " " << row.layout << " " << row.sharding << " dim " << row.dim;
}

JobConfig config_of(const Case& row, std::uint64_t seed) {
  return {.makeup = {.model = row.model, .layout = parse_layout(row.layout)},
          .training = {.seed = seed},
          .checkpoint = {.optimizer_sharding = sharding_named(row.sharding), .shard_dim = row.dim}};
}

const std::vector<Case> kCases = {
    {"moe-tiny", "ep2 dp2"},
    {"moe-tiny", "ep4 dp4"},
    {"moe-tiny", "tp2 dp4 ep4 etp1", "fsdp_dtensor"},
    {"moe-tiny", "tp2 dp4 ep2", "fsdp_dtensor", 1},
    {"moe-tiny", "tp3 dp2 ep2 etp3", "fsdp_dtensor", 2},
    {"moe-tiny", "dp4 dp_replicate2 ep2", "fsdp_dtensor"},
    {"moe-tiny", "pp2 dp2 ep2", "fully_sharded_model_space"},
    {"moe-tiny", "pp2 vpp2 tp2", "dp_reshardable"},
    {"moe-tiny", "pp2 dp6 ep3 layers 3-1", "dp_reshardable"},
    {"moe-tiny", "pp4 dp2 order pp-dp-ep-tp-cp", "fully_sharded_model_space"},
    // In the next row, dense tensors and experts of the same layer are on different ranks.
    {"moe-tiny", "tp2 pp2 dp2 ep4 etp1 order tp-pp-ep-dp", "fsdp_dtensor"},
    {"moe-tiny-mtp", "pp2 dp4 ep2 dp_replicate2", "dp_reshardable"},
    {"moe-tiny-mtp", "pp3 tp2", "fsdp_dtensor"},
    {"gpt-tiny", "pp2 dp3", "dp_reshardable"},
    {"gpt-tiny", "dp7", "fully_sharded_model_space"},
    {"gpt-tiny", "cp2 dp2 tp2", "fsdp_dtensor", 1},
    {"gpt-tiny", "dp30", "fsdp_dtensor"},
};

TEST(Job, TrainsTheSameBitsUnderEveryShardingAndMesh) {
  std::map<std::string, Trained> whole;
  for (const auto& row : kCases) {
    SCOPED_TRACE(row);
    if (!whole.contains(row.model)) {
      whole[row.model] = trained({.makeup = {.model = row.model}, .training = {.seed = 7}}, 4);
    }
    const Trained& one = whole[row.model];
    const Trained many = trained(config_of(row, 7), 4);
    EXPECT_EQ(many.records, one.records);
    EXPECT_EQ(difference(many.state, one.state), "");
    EXPECT_EQ(many.digest, one.digest);
    for (const auto& finding : many.findings) ADD_FAILURE() << finding;
  }
}

TEST(Job, WhatIsHandedToASaveComesBackUnderTheSameAndAnotherLayout) {
  for (const auto& row : kCases) {
    SCOPED_TRACE(row);
    const Trained reference = trained({.makeup = {.model = row.model}, .training = {.seed = 7}}, 5);
    const Trained saved = trained(config_of(row, 7), 3, &TrainingJob::state);
    for (const auto& finding : saved.findings) ADD_FAILURE() << finding;
    EXPECT_EQ(difference(resumed(saved.state, config_of(row, 99), 2).state, reference.state), "");
    // Loads the checkpoint into jobs of every sharding. Each of these jobs reads the state in the
    // form in which the checkpoint's sharding stored it.
    Case other = row;
    for (const auto sharding : sharding_names()) {
      SCOPED_TRACE(sharding);
      const std::string name(sharding);
      other.sharding = name.c_str();
      EXPECT_EQ(difference(resumed(saved.state, config_of(other, 99), 2).state, reference.state),
                "");
    }
    const Case whole{row.model, "tp1", "dp_reshardable"};
    if (std::string_view(row.sharding) != "dp_reshardable") {
      EXPECT_EQ(difference(resumed(saved.state, config_of(whole, 99), 2).state, reference.state),
                "");
    }
  }
}

TEST(Job, BucketsSurviveAChangeOfDpAndRefuseOneOfTpOrPp) {
  const Trained reference = trained({.makeup = {.model = "moe-tiny"}, .training = {.seed = 7}}, 5);
  const Case row{"moe-tiny", "pp2 dp6 ep2", "dp_reshardable"};
  const Trained saved = trained(config_of(row, 7), 3, &TrainingJob::state);
  std::size_t buckets = 0;
  for (const auto& tensor : saved.state.tensors) {
    if (tensor.key.ends_with("exp_avg")) ++buckets;
  }
  EXPECT_GT(buckets, 4U) << "the first defect of padding needs several buckets";
  for (const auto* layout : {"pp2 dp2 ep2", "pp2 dp4 ep2", "pp2 dp8 ep2 dp_replicate2"}) {
    const Case other{"moe-tiny", layout, "dp_reshardable"};
    EXPECT_EQ(difference(resumed(saved.state, config_of(other, 99), 2).state, reference.state), "");
  }
  for (const auto* layout : {"pp2 dp3 tp2 ep2 etp1", "dp6 ep2", "pp2 dp6 ep3"}) {
    try {
      resumed(saved.state, config_of({"moe-tiny", layout, "dp_reshardable"}, 99), 0);
      ADD_FAILURE() << layout;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kLayoutMismatch) << error.what();
    }
  }
}

TEST(Layout, IsReadAndPrinted) {
  EXPECT_EQ(to_string(parse_layout("dp=2, tp4")), "tp4 dp2");
  EXPECT_EQ(to_string(parse_layout("tp2dp2 order dp-tp")), "tp2 dp2 order dp-tp");
  EXPECT_EQ(to_string(Layout{}), "tp1");
  for (const auto* text : {"tp2 ep2 dp4 etp1 dp_replicate2", "pp2 vpp2 layers 1-2-3-4"}) {
    EXPECT_EQ(parse_layout(to_string(parse_layout(text))), parse_layout(text)) << text;
  }
  const auto code_of = [](const char* text) {
    try {
      parse_layout(text);
    } catch (const Error& error) {
      return error.code();
    }
    return Code::kInternal;
  };
  for (const auto* text :
       {"", "tp", "tq2", "tp2 tp2", "2tp", "tp99999999999", "tp2 dp2 order tp-vpp-dp"}) {
    EXPECT_EQ(code_of(text), Code::kUsage) << text;
  }
  for (const auto* text : {"tp0", "tp2 order dp", "tp2 order tp-tp", "ep2", "dp3 dp_replicate2",
                           "vpp2", "pp2 layers 4"}) {
    EXPECT_EQ(code_of(text), Code::kLayoutMismatch) << text;
  }
}

}  // namespace
}  // namespace reprise::sim
