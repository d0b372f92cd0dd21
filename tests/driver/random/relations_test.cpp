// Tests that the relations between two runs can fail. Each defect that is planted here leaves a
// scenario right, and makes it wrong after the change of one relation.

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "core/save/leaf_source.hpp"
#include "driver/language/scenario.hpp"
#include "driver/runs/property.hpp"
#include "sim/mutants/mutants.hpp"

namespace reprise::driver {
namespace {

using Origins = std::vector<LeafOrigin>;
/// True if item `item` of a rank's file is stored wrongly.
using Wrong = bool (*)(const Origins& origins, std::size_t item);

/// Stores zeros instead of the elements of some items.
class WrongSource final : public ContentSource {
 public:
  WrongSource(Device& device, Origins origins, Wrong wrong)
      : origins_(std::move(origins)), wrong_(wrong), right_(leaf_source(device, origins_)) {}

  void fill(std::size_t item, std::int64_t begin, std::int64_t end, MutableByteSpan out) override {
    if (!wrong_(origins_, item)) return right_->fill(item, begin, end, out);
    std::fill(out.begin(), out.end(), std::byte{0});
  }
  void drain() override { right_->drain(); }
  StagingMemory staging(std::size_t bytes) override { return right_->staging(bytes); }

 private:
  Origins origins_;
  Wrong wrong_;
  std::unique_ptr<ContentSource> right_;
};

template <Wrong wrong>
std::unique_ptr<ContentSource> wrong_source(Device& device, Origins origins) {
  return std::make_unique<WrongSource>(device, std::move(origins), wrong);
}
template <Wrong wrong>
void plant(sim::Policies& policies) {
  policies.save.source = wrong_source<wrong>;
}

bool is_behind_odd_bytes(const Origins& origins, std::size_t item) {
  return std::any_of(origins.begin(), origins.begin() + static_cast<std::ptrdiff_t>(item),
                     [](const LeafOrigin& origin) {
                       return origin.leaf != nullptr && origin.piece->box.elements() % 2 == 1 &&
                              size_of(origin.leaf->dtype) == 1;
                     });
}

/// Rank 0 of dp2 writes this tensor if the least loaded rank writes, and has its main copy.
constexpr std::string_view kOfRank0 = "output_layer.weight";
bool is_spare_copy(const Origins& origins, std::size_t item) {
  const TensorLeaf* leaf = origins[item].leaf;
  return leaf != nullptr && leaf->key == kOfRank0 && leaf->replica != 0;
}

/// In dp2 a rank writes at most 67 items if the least loaded rank writes.
constexpr std::size_t kItemsMost = 70;
bool is_beyond_the_most_items(const Origins& /*origins*/, std::size_t item) {
  return item >= kItemsMost;
}

const std::string kScenario = R"(proves: something
job:
  model: gpt-tiny
  layout: dp2
  optimizer: {kind: adam, sharding: fully_reshardable}
steps:
  - train: 1
  - save
  - restart: {layout: tp2}
  - train: 1
expect: {max_delta: 0}
)";

TEST(Relations, fail_for_a_defect_that_shows_only_after_their_change) {
  struct Row {
    std::string relation;
    void (*plant)(sim::Policies&);
  };
  const std::vector<Row> rows = {
      {"tensor-added", plant<is_behind_odd_bytes>},
      {"other-writers", plant<is_spare_copy>},
      {"fewer-writers", plant<is_beyond_the_most_items>},
  };
  const Scenario scenario = parse_scenario(kScenario, "relation.yaml");
  for (const auto& row : rows) {
    const Property& relation = property_named(row.relation);
    const auto right = failure_of(relation, scenario, {});
    EXPECT_FALSE(right) << row.relation << ": " << right->reason;
    LaneOptions defect;
    defect.decide = row.plant;
    const auto alone = failure_of(property_named("continuity"), scenario, defect);
    EXPECT_FALSE(alone) << row.relation << ": " << alone->reason;
    EXPECT_TRUE(failure_of(relation, scenario, defect)) << row.relation;
  }
}

TEST(Relations, of_one_rank_have_no_choice_of_writers) {
  Scenario scenario = parse_scenario(kScenario, "relation.yaml");
  for (auto& plan : scenario.lives) plan.layout = {};
  LaneOptions defect;
  defect.decide = plant<is_beyond_the_most_items>;
  for (const auto* relation : {"other-writers", "fewer-writers"}) {
    EXPECT_FALSE(failure_of(property_named(relation), scenario, defect)) << relation;
  }
}

}  // namespace
}  // namespace reprise::driver
