// Tests what is said of a run from what is kept of its generations.

#include "core/trend/trend.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/ports/no_progress.hpp"
#include "core/ports/passing_store.hpp"
#include "core/trend/tensor_facts.hpp"
#include "tests/fixtures/stored_fixture.hpp"
#include "tests/fixtures/written_checkpoint.hpp"

namespace reprise::test::trend_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TrendReport judged(const std::vector<GenerationFacts>& generations) {
  TrendJudge judge;
  for (const GenerationFacts& one : generations) judge.add(one);
  return judge.report();
}

/// Generations of a training of two weights and a frozen one, whose tensors all move as they
/// should. A test changes what it is about.
struct Training {
  std::vector<GenerationFacts> generations;

  Training() {
    for (std::uint64_t g = 0; g < 3; ++g) {
      GenerationFacts facts{.name = "step-" + std::to_string(g + 1),
                            .number = static_cast<std::int64_t>(g + 1)};
      facts.iteration = facts.number;
      for (const char* weight : {"a.weight", "b.weight"}) {
        add(facts, weight, 10 + g);
        add(facts, std::string("optimizer.state.") + weight + ".exp_avg", 20 + g);
        add(facts, std::string("optimizer.state.") + weight + ".exp_avg_sq", 30 + g);
        add(facts, std::string("optimizer.state.") + weight + ".step", 40 + g).number =
            static_cast<double>(g);
      }
      add(facts, "frozen.weight", 50);
      generations.push_back(std::move(facts));
    }
  }

  static TensorFacts& add(GenerationFacts& facts, const std::string& key, std::uint64_t digest) {
    return facts.tensors[key] = {.role = role_of(key), .digest = {digest, digest}, .bytes = 64};
  }
  /// Lets tensors whose keys contain the text be in the last generation what they were before.
  Training& still(const std::string& text) {
    for (auto& [key, facts] : generations[2].tensors) {
      if (key.find(text) != std::string::npos) facts = generations[1].tensors.at(key);
    }
    return *this;
  }

  std::vector<std::string> codes() const {
    std::vector<std::string> codes;
    for (const TrendFinding& finding : judged(generations).findings) {
      codes.push_back(std::string(name_of(finding.severity)) + " " + finding.code);
    }
    return codes;
  }
};

TEST(Trend, a_healthy_run_with_a_frozen_weight_has_no_finding) {
  const TrendReport report = judged(Training().generations);
  EXPECT_TRUE(report.healthy());
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_THAT(report.frozen, ElementsAre("frozen.weight"));
  ASSERT_EQ(report.rows.size(), 3U);
  EXPECT_EQ(report.rows[0].compared, 0U);
  EXPECT_EQ(report.rows[2].compared, 9U);
  EXPECT_EQ(report.rows[2].changed, 8U);
  EXPECT_EQ(report.rows[2].bytes_shared, 64U);
  EXPECT_EQ(report.rows[2].weights, 2U);
  EXPECT_EQ(report.rows[2].weights_changed, 2U);
  EXPECT_EQ(report.compared(), 2U);
}

TEST(Trend, what_did_not_move_is_told_by_its_kind) {
  EXPECT_THAT(Training().still("").codes(), ElementsAre("error STALE_BYTES"));
  EXPECT_THAT(Training().still("weight").codes(), ElementsAre("error STALE_BYTES"));
  EXPECT_THAT(Training().still(".exp_avg").codes(), ElementsAre("error STILL_MOMENTS"));
  EXPECT_THAT(Training().still(".step").codes(), ElementsAre("warning STILL_STEPS"));
  EXPECT_THAT(Training().still("a.weight").codes(), ElementsAre("note NOT_STEPPED"));
  Training some;
  some.still("a.weight");
  some.generations[2].tensors.at("optimizer.state.a.weight.step").digest[0] = 99;
  EXPECT_THAT(some.codes(), ElementsAre("error STALE_BYTES"));
  Training weight;
  weight.generations[2].tensors.at("a.weight") = weight.generations[1].tensors.at("a.weight");
  EXPECT_THAT(weight.codes(), ElementsAre("warning STILL_WEIGHT"));
  weight.generations[2].tensors.at("a.weight").dtype = DType::kBFloat16;
  weight.generations[1].tensors.at("a.weight").dtype = DType::kBFloat16;
  EXPECT_THAT(weight.codes(), ElementsAre("note ROUNDED_AWAY"));
}

TEST(Trend, weights_may_all_stay_if_moments_move_and_the_rate_can_be_0) {
  const auto codes = [](std::vector<double> before, std::vector<double> after, int steps = 10) {
    Training run;
    run.generations[2].number = run.generations[1].number + steps;
    for (const char* weight : {"a.weight", "b.weight"}) {
      run.generations[2].tensors.at(weight) = run.generations[1].tensors.at(weight);
    }
    run.generations[1].learning_rates = std::move(before);
    run.generations[2].learning_rates = std::move(after);
    return run.codes();
  };
  EXPECT_THAT(codes({0}, {0}), ElementsAre("note ZERO_RATE"));
  EXPECT_THAT(codes({0, 0}, {0.1, 0.1}), ElementsAre("warning STILL_WEIGHT"));
  EXPECT_THAT(codes({0.1}, {0}), ElementsAre("warning STILL_WEIGHT"));
  EXPECT_THAT(codes({0}, {0.1}, 1), ElementsAre("note ZERO_RATE"));
  EXPECT_THAT(codes({}, {}), ElementsAre("warning STILL_WEIGHT"));
  EXPECT_THAT(codes({0.1}, {}), ElementsAre("warning STILL_WEIGHT"));
  EXPECT_THAT(codes({0.1}, {0.1}), ElementsAre("error STALE_BYTES"));
  EXPECT_THAT(codes({0.1, 0}, {0, 0.1}), ElementsAre("error STALE_BYTES"));
  Training part;  // the moments of one of the two weights are stale as well
  for (const char* weight : {"a.weight", "b.weight"}) {
    part.generations[2].tensors.at(weight) = part.generations[1].tensors.at(weight);
  }
  for (auto& [key, facts] : part.generations[2].tensors) {
    const bool moment = key.find("exp_avg") != std::string::npos;
    if (moment && key.find(".a.") != std::string::npos) {
      facts = part.generations[1].tensors.at(key);
    }
  }
  part.generations[1].learning_rates = part.generations[2].learning_rates = {0};
  EXPECT_THAT(part.codes(), ElementsAre("note ZERO_RATE", "error STALE_BYTES"));
  Training nothing;
  nothing.still("");
  nothing.generations[1].learning_rates = nothing.generations[2].learning_rates = {0};
  EXPECT_THAT(nothing.codes(), ElementsAre("error STALE_BYTES"));
}

TEST(Trend, moments_that_are_zero_are_a_warning) {
  Training run;
  for (auto& generation : run.generations) {
    for (auto& [key, facts] : generation.tensors) {
      if (key.find("exp_avg") == std::string::npos || key.find(".a.") == std::string::npos)
        continue;
      facts.digest[0] = 0;
      facts.digest[1] = 0;
      facts.zero = true;
    }
  }
  EXPECT_THAT(run.codes(), ElementsAre("warning ZERO_MOMENTS", "warning ZERO_MOMENTS"));
}

TEST(Trend, an_iteration_that_does_not_go_on_is_an_error) {
  Training run;
  run.generations[2].iteration = 2;
  EXPECT_THAT(run.codes(), ElementsAre("error STALE_ITERATION"));
  run.generations[2].iteration = 30;  // counted otherwise than in the names, which is legal
  EXPECT_THAT(run.codes(), IsEmpty());
}

TEST(Trend, weights_alone_must_move_one_of_them) {
  Training run;
  for (auto& generation : run.generations) {
    std::erase_if(generation.tensors,
                  [](const auto& named) { return named.first.starts_with("optimizer"); });
  }
  EXPECT_THAT(run.codes(), IsEmpty());
  EXPECT_THAT(Training(run).still("a.weight").codes(), IsEmpty());
  EXPECT_THAT(Training(run).still("weight").codes(), ElementsAre("error STALE_BYTES"));
}

TEST(Trend, a_generation_that_can_t_be_read_is_left_out) {
  Training run;
  run.generations[1].unread = "torn";
  run.generations[1].tensors.clear();
  const TrendReport report = judged(run.generations);
  EXPECT_TRUE(report.healthy());
  EXPECT_TRUE(report.anything_unread());
  EXPECT_EQ(report.compared(), 1U);
  EXPECT_EQ(report.rows[2].compared, 9U);
}

TEST(Trend, bf16_weights_that_stayed_are_rounded_if_their_masters_moved) {
  const auto run_with_masters = [](std::uint64_t moved) {
    Training run;
    for (auto& generation : run.generations) {
      for (const char* weight : {"a.weight", "b.weight"}) {
        generation.tensors.at(weight).dtype = DType::kBFloat16;
        Training::add(generation, std::string("optimizer.state.") + weight + ".fp32_param",
                      60 + moved * static_cast<std::uint64_t>(generation.number));
      }
    }
    for (const char* weight : {"a.weight", "b.weight"}) {
      run.generations[2].tensors.at(weight) = run.generations[1].tensors.at(weight);
    }
    return run;
  };
  EXPECT_THAT(run_with_masters(1).codes(), ElementsAre("warning ROUNDED_AWAY"));
  EXPECT_THAT(run_with_masters(0).codes(), ElementsAre("warning STILL_WEIGHT"));
  Training stale = run_with_masters(0);
  for (auto& generation : stale.generations) generation.learning_rates = {0.1};
  EXPECT_THAT(stale.codes(), ElementsAre("error STALE_BYTES"));
}

TEST(Trend, moments_whose_weights_are_unknown_are_told_and_must_move) {
  Training run;
  for (auto& generation : run.generations) {
    std::map<std::string, TensorFacts> tensors;
    for (const auto& [key, facts] : generation.tensors) {
      const auto at = key.find("state.");
      std::string name = key;  // the optimizer numbers its parameters
      if (at != std::string::npos) name.replace(at + 6, 8, key[at + 6] == 'a' ? "0" : "1");
      tensors[name] = facts;
      tensors[name].role = role_of(name);
    }
    generation.tensors = std::move(tensors);
  }
  EXPECT_THAT(run.codes(), ElementsAre("note UNKNOWN_MOMENTS", "note UNKNOWN_MOMENTS"));
  EXPECT_THAT(run.still("exp_avg").codes(),
              ElementsAre("note UNKNOWN_MOMENTS", "error STILL_MOMENTS"));
}

TEST(Trend, where_no_weight_is_compared_nothing_is_judged) {
  Training run;
  EXPECT_TRUE(judged(run.generations).all_judged());
  for (auto& generation : run.generations) {
    for (auto& [key, facts] : generation.tensors) {
      if (facts.role.kind == ParameterRole::Kind::kWeight) facts.dtype = DType::kInt8;
    }
  }
  EXPECT_EQ(judged(run.generations).compared(), 2U);
  EXPECT_EQ(judged(run.generations).judged(), 0U);
  EXPECT_FALSE(judged(run.generations).all_judged());
  run.generations.resize(1);
  EXPECT_FALSE(judged(run.generations).all_judged());
}

TEST(Trend, one_generation_is_compared_with_nothing) {
  Training run;
  run.generations.resize(1);
  EXPECT_EQ(judged(run.generations).compared(), 0U);
}

TEST(Trend, rates_of_too_many_objects_are_unknown) {
  HostDevice device("test", 0);
  ThreadTasks tasks(2);
  NoProgress progress;
  const auto all = [](const std::string&) { return true; };
  for (const std::size_t groups : {std::size_t{4096}, std::size_t{4097}}) {
    WrittenCheckpoint written;
    for (std::size_t i = 0; i < groups; ++i) {
      written.object("optimizer.param_groups.w" + std::to_string(i) + ".lr",
                     Value(static_cast<double>(i)));
    }
    Checkpoint checkpoint = Checkpoint::open(written.store(), "ckpt");
    GenerationFacts facts;
    add_facts(checkpoint, "", all, {device, tasks, progress}, facts);
    EXPECT_EQ(facts.learning_rates.size(), groups == 4096 ? groups : 0U);
  }
}

/// A store of which one directory can't be read.
class LockedStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  std::unique_ptr<ReadFile> open(const std::string& path) override {
    return PassingStore::open(allowed(path));
  }
  std::optional<Entry> stat(const std::string& path) override {
    return PassingStore::stat(allowed(path));
  }
  std::vector<Entry> list(const std::string& path) override {
    return PassingStore::list(allowed(path));
  }

 private:
  static const std::string& allowed(const std::string& path) {
    if (path.find("step-4") != std::string::npos) throw Error(Code::kIo, "permission denied");
    return path;
  }
};

TEST(Trend, a_directory_that_can_t_be_read_does_not_end_it) {
  LockedStore store(data_store());
  const RunGenerations run = run_generations(store, "changes_2.15.0/run");
  ASSERT_EQ(run.found.size(), 3U);
  EXPECT_NE(run.found[1].unread.find("permission denied"), std::string::npos);
  HostDevice device("test", 0);
  ThreadTasks tasks(2);
  NoProgress progress;
  const TrendReport report =
      trend(store, run.found, [](const std::string&) { return true; }, {device, tasks, progress});
  EXPECT_EQ(report.compared(), 1U);
  EXPECT_NE(report.rows[1].unread.find("permission denied"), std::string::npos);
  EXPECT_FALSE(report.all_judged());
}

}  // namespace
}  // namespace reprise::test::trend_test
