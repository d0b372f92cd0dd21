#include "driver/language/scenario_checkpoint.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/plan/strictness.hpp"

namespace reprise::driver {
namespace {

constexpr std::array<std::string_view, 2> kFallbacks = {"none", "newest_whole"};
constexpr std::array<std::string_view, 2> kChecksums = {"ignored", "verified"};
constexpr std::array<std::string_view, 2> kReads = {"by_each", "once_per_job"};
constexpr std::array<std::string_view, 2> kBackgrounds = {"any_time", "late"};
constexpr std::int64_t kKeepMax = 10000;
constexpr std::int64_t kInFlightMax = 100;
constexpr std::int64_t kBatchLeast = 4096;
constexpr std::int64_t kStagingMost = std::int64_t{1} << 30;

/// Reads options for saves during training.
void read_async(YamlMap& checkpoint, CheckpointPlan& plan) {
  plan.async = checkpoint.flag("async").value_or(false);
  plan.late = checkpoint.word("background", kBackgrounds) == "late";
  plan.in_flight = checkpoint.integer_in("in_flight", 1, kInFlightMax).value_or(plan.in_flight);
  plan.batch_bytes = checkpoint.integer_in("batch_bytes", kBatchLeast, kStagingMost).value_or(0);
  plan.staging_bytes =
      checkpoint.integer_in("staging_bytes", std::max(plan.batch_bytes, kBatchLeast), kStagingMost)
          .value_or(0);
}

/// Reads the capabilities of the simulated store.
void read_store(YamlMap map, StoreCapabilities& store) {
  store.exchange = map.flag("exchange").value_or(store.exchange);
  store.locks = map.flag("locks").value_or(store.locks);
  store.renames = map.flag("renames").value_or(store.renames);
  store.lists_lag = map.flag("lists_lag").value_or(store.lists_lag);
  map.refuse_unknown();
}

}  // namespace

std::string_view name_of(CrashModel model) {
  switch (model) {
    case CrashModel::kPowerCut:
      return "power_cut";
    case CrashModel::kKilled:
      return "killed";
    case CrashModel::kAnySubset:
      return "any_subset";
  }
  return "";
}

bool is_power_cut_planned(const Scenario& scenario) {
  return scenario.checkpoint.crash == CrashModel::kPowerCut;
}

void read_checkpoint(YamlMap checkpoint, CheckpointPlan& plan) {
  checkpoint.attempt([&] {
    const auto strict = checkpoint.text("strictness");
    if (!strict) return;
    const auto mode = strictness_named(*strict);
    if (!mode)
      checkpoint.refuse(checkpoint.node("strictness"), "has the unknown strict mode " + *strict);
    plan.strictness = *mode;
  });
  checkpoint.attempt(
      [&] { plan.keeps_plan = checkpoint.flag("assume_constant_structure").value_or(false); });
  plan.keep = checkpoint.integer_in("keep", 1, kKeepMax).value_or(0);
  plan.optimizer = !checkpoint.flag("no_save_optim").value_or(false);
  plan.random = !checkpoint.flag("no_save_rng").value_or(false);
  plan.falls_back = checkpoint.word("fall_back", kFallbacks) == "newest_whole";
  plan.checks = checkpoint.word("checksums", kChecksums) == "verified";
  plan.reads_once = checkpoint.word("reads", kReads) == "once_per_job";
  read_async(checkpoint, plan);
  plan.crash = checkpoint.one_of(
      "crash", {CrashModel::kPowerCut, CrashModel::kKilled, CrashModel::kAnySubset});
  checkpoint.attempt([&] {
    if (checkpoint.has("store")) read_store(checkpoint.map("store"), plan.store);
  });
  checkpoint.know("store");
  checkpoint.refuse_unknown();
}

}  // namespace reprise::driver
