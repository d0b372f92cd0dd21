// Tests saves without the optimizer or the random states, and jobs that load them.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <mutex>

#include "sim/job/model/content.hpp"
#include "tests/sim/job/job_worlds.hpp"

namespace reprise::sim {
namespace {

constexpr const char* kShardings[] = {"fully_reshardable", "fully_sharded_model_space",
                                      "fsdp_dtensor", "dp_reshardable"};

JobConfig config_of(const char* sharding, const char* layout) {
  return {.makeup = {.model = "moe-tiny", .layout = parse_layout(layout)},
          .training = {.seed = 7},
          .checkpoint = {.optimizer_sharding = sharding_named(sharding)}};
}

/// Trains a job for three steps. Returns the state that the job then passes to a save, assembled
/// from all ranks.
GlobalState saved_state(const JobConfig& config, const SaveParts& parts) {
  std::vector<StateDict> dicts(static_cast<std::size_t>(config.makeup.layout.world_size()));
  std::vector<std::unique_ptr<TrainingJob>> jobs(dicts.size());
  contracts::run_world(config.makeup.layout.world_size(), [&](Fabric& fabric) {
    const auto rank = static_cast<std::size_t>(fabric.rank().value);
    jobs[rank] = std::make_unique<TrainingJob>(config, fabric);
    for (int i = 0; i < 3; ++i) jobs[rank]->step();
    dicts[rank] = jobs[rank]->state(parts);
  });
  std::vector<RankState> views;
  for (std::size_t r = 0; r < dicts.size(); ++r) {
    views.push_back({{static_cast<std::int32_t>(r)}, &dicts[r]});
  }
  judged::Findings findings;
  GlobalState state = assemble(views, findings);
  EXPECT_TRUE(findings.empty());
  return state;
}

bool has_slots(const GlobalState& state) {
  return std::any_of(state.tensors.begin(), state.tensors.end(), [](const GlobalTensor& tensor) {
    return tensor.key.find("exp_avg") != std::string::npos;
  });
}

bool has_random(const GlobalState& state) {
  return std::any_of(state.objects.begin(), state.objects.end(), [](const GlobalObject& object) {
    return object.key.find("rng_state") != std::string::npos;
  });
}

TEST(SaveParts, what_is_left_out_is_in_no_leaf_and_the_common_state_says_so) {
  for (const char* sharding : kShardings) {
    for (const bool optimizer : {true, false}) {
      for (const bool random : {true, false}) {
        const SaveParts parts{.optimizer = optimizer, .random = random};
        const GlobalState saved = saved_state(config_of(sharding, "tp2 dp2"), parts);
        EXPECT_EQ(has_slots(saved), optimizer) << sharding;
        EXPECT_EQ(has_random(saved), random) << sharding;
        EXPECT_EQ(decode_common(saved.common).parts, parts);
        EXPECT_EQ(saved.common.find("optimizer") != nullptr, optimizer);
        EXPECT_EQ(saved.common.find("opt_param_scheduler") != nullptr, optimizer);
      }
    }
  }
}

TEST(SaveParts, weights_alone_give_masters_and_a_new_optimizer_in_any_layout) {
  for (const char* sharding : kShardings) {
    const GlobalState saved =
        saved_state(config_of(sharding, "tp2 dp2"), {.optimizer = false, .random = false});
    const Trained job = resumed(saved, config_of(sharding, "ep2 dp2"), 0);
    std::size_t weights = 0;
    std::size_t masters = 0;
    for (const GlobalTensor& tensor : job.state.tensors) {
      if (const GlobalTensor* stored = saved.tensor(tensor.key)) {
        EXPECT_EQ(tensor.data, stored->data) << sharding << " " << tensor.key;
        ++weights;
      } else if (tensor.key.find("exp_avg") != std::string::npos) {
        EXPECT_TRUE(std::all_of(tensor.data.begin(), tensor.data.end(), [](std::byte b) {
          return b == std::byte{0};
        })) << tensor.key;
      } else {
        ++masters;
        for (std::size_t i = 0; i < tensor.data.size(); i += 4) {
          const auto bits = load_le<std::uint32_t>(ByteSpan(tensor.data).subspan(i));
          ASSERT_EQ(bits & 0xffffU, 0U) << "a master is a bf16 number: " << tensor.key;
        }
      }
    }
    EXPECT_GT(weights, 0U);
    EXPECT_EQ(weights, masters);
    const CommonState common = decode_common(job.state.common);
    EXPECT_EQ(common.progress.iteration, 3);
    EXPECT_EQ(common.optimizer.groups.front().step, 0);
  }
}

TEST(SaveParts, without_random_states_the_rest_goes_on_bit_for_bit) {
  const GlobalState whole = saved_state(config_of(kShardings[0], "tp2 dp2"), {});
  const GlobalState part = saved_state(config_of(kShardings[0], "tp2 dp2"), {.random = false});
  const Layout layout = parse_layout("ep2 dp2");
  const JobConfig config{.makeup = {.model = "moe-tiny", .layout = layout},
                         .training = {.seed = 99}};
  EXPECT_EQ(difference(resumed(part, config, 2).state, resumed(whole, config, 2).state), "");
}

}  // namespace
}  // namespace reprise::sim
