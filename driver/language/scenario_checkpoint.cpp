#include "driver/language/scenario_checkpoint.hpp"

#include <string_view>

#include "core/plan/strictness.hpp"

namespace reprise::driver {
namespace {

constexpr std::int64_t kKeepMax = 10000;
constexpr std::int64_t kInFlightMax = 100;
constexpr std::int64_t kBatchLeast = 4096;
constexpr std::int64_t kStagingMost = std::int64_t{1} << 30;

std::optional<Strictness> strict_mode(YamlMap& map, std::string_view key) {
  const auto name = map.text(key);
  if (!name) return std::nullopt;
  const auto mode = strictness_named(*name);
  if (!mode) map.refuse(map.node(key), "has the unknown strict mode " + *name);
  return mode;
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

const Rows<StoreCapabilities>& store_rows() {
  using Store = StoreCapabilities;
  static const Rows<Store> rows = {
      row("exchange", &Store::exchange, &YamlMap::flag, Written::kAlways),
      row("locks", &Store::locks, &YamlMap::flag, Written::kAlways),
      row("renames", &Store::renames, &YamlMap::flag, Written::kAlways),
      row("lists_lag", &Store::lists_lag, &YamlMap::flag, Written::kAlways),
  };
  return rows;
}

const Rows<CheckpointPlan>& checkpoint_rows() {
  using Plan = CheckpointPlan;
  static const Rows<Plan> rows = {
      row("strictness", &Plan::strictness, strict_mode, Written::kAlways),
      row("assume_constant_structure", &Plan::keeps_plan, &YamlMap::flag),
      row("no_save_optim", &Plan::optimizer, NotFlag{}),
      row("no_save_rng", &Plan::random, NotFlag{}),
      row("keep", &Plan::keep, Whole{1, kKeepMax}),
      row("fall_back", &Plan::falls_back, either("none", "newest_whole")),
      row("checksums", &Plan::checks, either("ignored", "verified")),
      row("reads", &Plan::reads_once, either("by_each", "once_per_job")),
      row("async", &Plan::async, &YamlMap::flag),
      row("background", &Plan::late, either("any_time", "late")),
      row("in_flight", &Plan::in_flight, Whole{1, kInFlightMax}),
      row("staging_bytes", &Plan::staging_bytes, Whole{kBatchLeast, kStagingMost}),
      row("batch_bytes", &Plan::batch_bytes, Whole{kBatchLeast, kStagingMost}),
      row("crash", &Plan::crash,
          by_name({CrashModel::kPowerCut, CrashModel::kKilled, CrashModel::kAnySubset})),
      row("store", &Plan::store,
          Mapping<StoreCapabilities>{.rows = store_rows(), .usual = Plan().store}),
  };
  return rows;
}

void read_checkpoint(YamlMap checkpoint, CheckpointPlan& plan) {
  read_rows(checkpoint, checkpoint_rows(), plan);
  if (plan.staging_bytes > 0 && plan.staging_bytes < plan.batch_bytes) {
    checkpoint.integer_in("staging_bytes", plan.batch_bytes, kStagingMost);
  }
  checkpoint.refuse_unknown();
}

}  // namespace reprise::driver
