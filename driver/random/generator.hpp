#pragma once
// Draws random scenarios: jobs, the layouts of their lives, and optimizer shardings. A scenario
// depends only on its random stream, so a seed determines all scenarios.

#include <cstdint>
#include <string>

#include "core/base/random.hpp"
#include "driver/language/scenario.hpp"

namespace reprise::driver {

struct CaseLimits {
  std::int32_t world_max = 16;
  std::size_t lives_max = 4;
};

sim::Sharding random_sharding(Stream& random);
/// Returns a random number of ranks; in half of the cases at most 4.
std::int32_t random_world(Stream& random, const CaseLimits& limits);
/// Returns a layout of `world` ranks that fits the model and passes sim::check.
sim::Layout random_layout(Stream& random, const std::string& model, std::int32_t world);

/// Decides how often each setting of a save that runs during training is drawn.
struct AsyncOdds {
  std::uint64_t late_one_in = 2;
  std::int64_t in_flight_most = 3;
  std::uint64_t small_one_in = 3;
};
/// Decides at random whether saves run during training. If they do, sometimes delays their
/// background work, and sometimes gives them very little staging memory.
void draw_async(Stream random, const AsyncOdds& odds, CheckpointPlan& plan);

/// Returns a whole scenario with its expectations. In half of the loads, the layout differs from
/// the previous one in one or two axes; in the others, it is drawn anew. A third of the lives order
/// their ranks differently, some with gaps. One scenario in four is a job of modules, see
/// random_modules.hpp.
Scenario random_scenario(Stream random, const CaseLimits& limits);
/// Returns a scenario with a fault: a rank dies at some moment of some phase, a write or a sync
/// fails, or a device computes wrong results and the job restarts on another device. The job must
/// still continue from a committed checkpoint.
Scenario random_faulty_scenario(Stream random, const CaseLimits& limits);

}  // namespace reprise::driver
