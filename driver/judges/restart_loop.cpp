#include "driver/judges/restart_loop.hpp"

#include <algorithm>

#include "reprise/error.hpp"
#include "sim/job/rerun/rerun_state.hpp"

namespace reprise::driver {
namespace {

bool exited_with(const LifeRecord& life, int code) {
  return !life.ranks.empty() && life.ranks.front().exit_code == code;
}

/// True if the life saved a fault checkpoint of that step.
bool left_fault_at(const LifeRecord& life, std::int64_t step) {
  if (!exited_with(life, sim::kExitForRerun)) return false;
  const auto& saves = life.ranks.front().saves;
  return !saves.empty() && saves.back().point.step == Step{step};
}

/// True if both lives ended with a diagnosis and had loaded the same checkpoint.
bool went_round(const LifeRecord& before, const LifeRecord& life) {
  return exited_with(before, sim::kExitAfterDiagnosis) &&
         exited_with(life, sim::kExitAfterDiagnosis) && before.layout == life.layout &&
         before.ranks.front().result.loaded_step == life.ranks.front().result.loaded_step;
}

}  // namespace

// Reports a job that repeatedly restarts from one checkpoint without logging that. Every such
// restart runs the same iteration again. From the second restart on, the log must say so.
std::optional<Finding> restart_loop_of(std::span<const LifeRecord> lives) {
  for (std::size_t i = 1; i < lives.size(); ++i) {
    const auto before = lives.first(i);
    const auto any = [&](const auto& holds) {
      return std::any_of(before.begin(), before.end(), holds);
    };
    if (!any([&](const auto& one) { return went_round(one, lives[i]); })) continue;
    const std::int64_t step = lives[i].ranks.front().result.loaded_step;
    if (!any([&](const auto& one) { return left_fault_at(one, step); })) continue;
    if (is_logged(lives[i], "run again from this checkpoint")) continue;
    return judged::fail(judged::kRestartLoop,
                        "life " + std::to_string(i) + " began from the fault checkpoint of step " +
                            std::to_string(step) +
                            ", ended like an earlier one that had, but no log says so");
  }
  return {};
}

}  // namespace reprise::driver
