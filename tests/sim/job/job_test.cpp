#include "sim/job/job.hpp"

#include <gtest/gtest.h>

#include "sim/job/solo_fabric.hpp"
#include "tests/sim/job/job_worlds.hpp"

namespace reprise::sim {
namespace {

constexpr int kSteps = 9;  // two overflows

const std::vector<std::string> kLayouts = {
    "tp2", "tp4", "dp2", "tp2 dp2", "tp3", "dp3 tp2", "cp2 dp2", "dp5", "tp2 dp2 order dp-tp"};

TEST(Job, TheStateAndTheLossesAreTheSameUnderEveryLayout) {
  const Trained one = trained(parse_layout("tp1"), kSteps);
  ASSERT_EQ(one.records.size(), static_cast<std::size_t>(kSteps));
  EXPECT_NE(one.digest, trained(parse_layout("tp1"), kSteps - 1).digest);
  for (const auto& text : kLayouts) {
    SCOPED_TRACE(text);
    const Trained many = trained(parse_layout(text), kSteps);
    EXPECT_EQ(many.records, one.records);
    EXPECT_EQ(difference(many.state, one.state), "");
    EXPECT_EQ(many.digest, one.digest);
    EXPECT_TRUE(many.rulings.empty());
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
  const Trained twin = trained(parse_layout("tp1"), kSteps);
  for (const auto& text : {"tp4", "tp2 dp2", "dp3", "tp1"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(difference(resumed(saved.state, parse_layout(text), 0).state, saved.state), "");
    const Trained later = resumed(saved.state, parse_layout(text), kSteps - 5);
    EXPECT_EQ(difference(later.state, twin.state), "");
    EXPECT_EQ(later.records, std::vector<StepRecord>(twin.records.begin() + 5, twin.records.end()));
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
  TrainingJob job({.seed = 3}, solo);
  const auto request = job.load_request(&saved.state.common);
  EXPECT_TRUE(request.wanted.objects.empty());
  EXPECT_EQ(request.excused, std::vector<std::string>{"rng_state"});
  EXPECT_EQ(request.notes.size(), 1U);
}

/// Every leaf value below `value`, changed one at a time.
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
  if (const auto* number = value.as<std::int64_t>()) value = *number + 1;
  if (const auto* number = value.as<double>()) value = *number == 0 ? 0.5 : *number * 2;
  if (const auto* text = value.as<std::string>()) value = *text == "linear" ? "constant" : "linear";
  visit(path);
  value = original;
}

bool layout_says(const std::string& path) {
  return path.find("_parallel_size") != std::string::npos || path.ends_with("rank_order");
}

TEST(Job, EachPersistedScalarThatIsCorruptedAtLoadIsSeenLater) {
  Trained saved = trained(parse_layout("tp1"), 5);
  const Trained twin = trained(parse_layout("tp1"), 45);  // past the end of the decays
  int changes = 0;
  for_each_change(saved.state.common, "", [&](const std::string& path) {
    if (layout_says(path) || path.starts_with(".reprise.parent") || path == ".reprise.engine") {
      return;
    }
    SCOPED_TRACE(path);
    ++changes;
    try {
      const Trained later = resumed(saved.state, parse_layout("tp1"), 40);
      Trained without_values = later;  // the values themselves do not count, only what they did
      without_values.state.common = twin.state.common;
      EXPECT_NE(difference(without_values.state, twin.state), "");
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == Code::kForeignCheckpoint || error.code() == Code::kUnsupported)
          << error.what();
    }
  });
  EXPECT_GT(changes, 30);
}

TEST(Job, OneBitOfAnyTensorThatIsCorruptedAtLoadIsSeenAtTheNextStep) {
  Trained saved = trained(parse_layout("tp1"), 5);
  const Trained twin = trained(parse_layout("tp1"), 6);
  for (auto& tensor : saved.state.tensors) {
    SCOPED_TRACE(tensor.key);
    tensor.data.back() ^= std::byte{0x40};
    try {
      EXPECT_NE(difference(resumed(saved.state, parse_layout("tp1"), 1).state, twin.state), "");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kStaleDerived) << error.what();
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
  EXPECT_EQ(code_of({.layout = {.tp = 2}}), Code::kLayoutMismatch);
  EXPECT_EQ(code_of({.layout = {.pp = 2}}), Code::kUnsupported);
  EXPECT_EQ(code_of({.model = "gpt-tyni"}), Code::kUsage);
}

TEST(Layout, IsReadAndPrinted) {
  EXPECT_EQ(to_string(parse_layout("dp=2, tp4")), "tp4 dp2");
  EXPECT_EQ(to_string(parse_layout("tp2dp2 order dp-tp")), "tp2 dp2 order dp-tp");
  EXPECT_EQ(to_string(Layout{}), "tp1");
  const auto code_of = [](const char* text) {
    try {
      parse_layout(text);
    } catch (const Error& error) {
      return error.code();
    }
    return Code::kInternal;
  };
  for (const auto* text : {"", "tp", "tq2", "tp2 tp2", "2tp", "tp99999999999"}) {
    EXPECT_EQ(code_of(text), Code::kUsage) << text;
  }
  for (const auto* text : {"tp0", "tp2 order dp", "tp2 order tp-tp", "ep2"}) {
    EXPECT_EQ(code_of(text), Code::kLayoutMismatch) << text;
  }
}

}  // namespace
}  // namespace reprise::sim
