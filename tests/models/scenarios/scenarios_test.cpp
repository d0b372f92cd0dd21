// Runs the scenarios of the GPU lane on the simulated cluster, with the arrays of each rank in the
// memory of a device of the model.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/adapters/cuda/cuda_device.hpp"
#include "driver/judges/verdict.hpp"
#include "driver/lanes/sim_lane.hpp"
#include "driver/language/catalogue.hpp"
#include "driver/runs/run.hpp"
#include "sim/cuda/cuda_processor.hpp"
#include "tests/models/cuda/cuda_model.hpp"

namespace reprise::models {
namespace {

constexpr int kDevices = 8;

/// A device and a processor for each rank of the life that runs.
class GpuRanks {
 public:
  driver::MemoryOf memory() {
    return [this](const driver::RankSeat& seat) {
      if (ranks_.contains(seat.rank.value)) ranks_.clear();  // those of the life before
      const auto& rank =
          ranks_.emplace(seat.rank.value, std::make_unique<Rank>(seat.rank)).first->second;
      return driver::RankMemory{*rank->processor, rank->device};
    };
  }

 private:
  struct Rank {
    explicit Rank(GlobalRank rank) : device("node7", rank.value % kDevices) {}
    ~Rank() {
      // A rank that was killed may have left copies, which the end of its process would stop.
      device.wait(device.gather({}));
    }
    CudaDevice device;
    std::unique_ptr<sim::Processor> processor = sim::make_cuda_processor(device);
  };
  std::map<std::int32_t, std::unique_ptr<Rank>> ranks_;
};

std::vector<driver::Scenario> scenarios_of(const std::string& tag) {
  driver::Selection selection;
  selection.paths = {std::string(REPRISE_SOURCE_DIR) + "/scenarios"};
  selection.tag = tag;
  selection.rows_max = 1;
  return read_catalogue(selection);
}

class GpuScenarios : public testing::TestWithParam<std::string> {};

TEST_P(GpuScenarios, come_to_the_same_as_on_the_host) {
  Settings wanted = settings();
  wanted.devices = kDevices;
  reset(wanted);
  const driver::LaneOptions options;
  const auto scenarios = scenarios_of(GetParam());
  ASSERT_FALSE(scenarios.empty());
  for (const auto& scenario : scenarios) {
    SCOPED_TRACE(scenario.name);
    const auto host = make_sim_lane(scenario, options);
    const auto right = judge(scenario, run_lives(scenario, *host, options));
    const std::uint64_t before = calls();
    GpuRanks ranks;
    const auto lane = make_sim_lane(scenario, options, ranks.memory());
    const auto result = judge(scenario, run_lives(scenario, *lane, options));
    EXPECT_EQ(result.verdict, reports::Verdict::kPass) << result.reason;
    EXPECT_EQ(result.verdict, right.verdict) << result.reason;
    EXPECT_EQ(result.content_digest, right.content_digest);
    EXPECT_GT(calls(), before + 100) << "the job did not work on the device";
  }
}

INSTANTIATE_TEST_SUITE_P(One, GpuScenarios, testing::Values("gpu-one"));
INSTANTIATE_TEST_SUITE_P(Shared, GpuScenarios, testing::Values("gpu-shared"));

}  // namespace
}  // namespace reprise::models
