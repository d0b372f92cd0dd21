// Runs the whole job with its arrays in memory that host code can't access. This shows that the
// job, the engine, the faults and the judges never dereference a device address.
#include "tests/contracts/guarded_processor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <vector>

#include "driver/judges/verdict.hpp"
#include "driver/lanes/sim_lane.hpp"
#include "driver/language/catalogue.hpp"
#include "driver/runs/run.hpp"

namespace reprise::driver {
namespace {

/// Guarded memory for each rank of each world; kept until the lane ends.
class GuardedRanks {
 public:
  MemoryOf memory() {
    return [this](const RankSeat& seat) {
      auto& rank = ranks_.emplace_back(std::make_unique<Rank>(seat.ports.device));
      return RankMemory{rank->processor, rank->device};
    };
  }

 private:
  struct Rank {
    explicit Rank(Device& inner) : device(inner, processor.pages()) {}
    contracts::GuardedProcessor processor;
    contracts::GuardedDevice device;
  };
  std::vector<std::unique_ptr<Rank>> ranks_;
};

class GuardedMemory : public testing::TestWithParam<std::string> {};

TEST_P(GuardedMemory, comes_to_the_same_as_the_hosts) {
  const LaneOptions options;
  const Selection selection{
      .paths = {std::string(REPRISE_SOURCE_DIR) + "/scenarios/" + GetParam() + ".yaml"},
      .rows_max = 2};
  for (const auto& scenario : read_catalogue(selection)) {
    SCOPED_TRACE(scenario.name);
    const auto lane = make_sim_lane(scenario, options);
    const auto right = judge(scenario, run_lives(scenario, *lane, options));
    GuardedRanks ranks;
    const auto guarded = make_sim_lane(scenario, options, ranks.memory());
    const auto result = judge(scenario, run_lives(scenario, *guarded, options));
    EXPECT_EQ(result.verdict, right.verdict) << result.reason;
    EXPECT_EQ(result.verdict, reports::Verdict::kPass) << result.reason;
    EXPECT_EQ(result.content_digest, right.content_digest);
    EXPECT_EQ(result.content_digest.empty(), scenario.expect.refusal.has_value());
    EXPECT_EQ(result.event_hash, right.event_hash);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Scenarios, GuardedMemory,
    testing::Values("placements/shardings", "placements/tp-ep-fsdp",
                    "placements/buckets-to-tensors", "placements/bucket-instances",
                    "placements/flat-ranges", "placements/empty-shards", "placements/hsdp",
                    "placements/mtp", "placements/buckets-refuse", "placements/virtual-stages",
                    "mimo/own-shardings", "mimo/three-modules", "mimo/experts-other-grids",
                    "mimo/frozen-then-trained", "mimo/trained-then-frozen", "mimo/module-added",
                    "mimo/release", "mimo/load-options", "mimo/without-optimizer",
                    "mimo/grids-refused", "mimo/overflow", "rerun/persistent", "rerun/gradients",
                    "rerun/two-transients", "async/reallocated", "async/reallocated-in-flight",
                    "async/any-time", "async/crash-beside", "async/fault-save", "async/write-fails",
                    "reads/once", "reads/falls-back", "cache/constant", "groups/own-groups",
                    "regress/rows-of-other-ranks", "regress/weights-from-masters"),
    [](const auto& test) {
      std::string name = test.param;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return c == '/' || c == '-'; }, '_');
      return name;
    });

TEST(GuardedPages, end_whoever_follows_an_address_outside_of_an_operation) {
  contracts::GuardedProcessor processor;
  const sim::ArrayMemory memory = processor.allocate(64);
  EXPECT_EXIT(
      {
        std::signal(SIGSEGV, SIG_DFL);  // replaces a sanitizer's handler, which would exit
        memory[0] = std::byte{1};
      },
      testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace reprise::driver
