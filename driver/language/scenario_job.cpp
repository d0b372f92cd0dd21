#include "driver/language/scenario_job.hpp"

#include <array>
#include <cstdint>

#include "driver/language/scenario_faults.hpp"
#include "driver/language/scenario_layout.hpp"
#include "driver/language/scenario_modules.hpp"

namespace reprise::driver {
namespace {

constexpr std::int64_t kDimMax = 15;
constexpr sim::Sharding kFieldsDefault = sim::Sharding::kDpReshardable;
constexpr std::int64_t kSamplesMax = 1'000'000'000;

/// Lengths are in samples, and a batch has 8 samples. The first step uses the rate at 0 samples.
const Rows<sim::Schedule>& schedule_rows() {
  using sim::RateDecay;
  using sim::Schedule;
  static const Rows<Schedule> rows = {
      row("lr_warmup_steps", &Schedule::lr_warmup_steps, Whole{0, kSamplesMax}, Written::kAlways),
      row("lr_decay_steps", &Schedule::lr_decay_steps, Whole{0, kSamplesMax}, Written::kAlways),
      row("wd_incr_steps", &Schedule::wd_incr_steps, Whole{0, kSamplesMax}, Written::kAlways),
      row("lr_decay_style", &Schedule::lr_decay_style,
          by_name({RateDecay::kCosine, RateDecay::kLinear, RateDecay::kConstant}),
          Written::kAlways),
      row("max_lr", &Schedule::max_lr, &YamlMap::number, Written::kAlways),
      row("min_lr", &Schedule::min_lr, &YamlMap::number, Written::kAlways),
  };
  return rows;
}

void check_schedule(YamlMap& map, const sim::Schedule& schedule) {
  if (schedule.lr_decay_steps > schedule.lr_warmup_steps) return;
  map.fail(map.node("lr_decay_steps"), "must end its decay after its warm-up");
}

void read_nodes(YamlMap& job, Scenario& scenario) {
  const std::int32_t world = scenario.lives.front().world_size();
  const auto nodes = job.integer_in("nodes", 1, kWorldMax);
  if (scenario.ranks_per_node > 0 && nodes)
    job.fail(job.node("nodes"), "has both nodes and ranks_per_node");
  if (nodes && world % *nodes != 0) {
    job.fail(job.node("nodes"), "can't put " + std::to_string(world) + " ranks evenly on " +
                                    std::to_string(*nodes) + " nodes; give ranks_per_node");
  }
  if (nodes) scenario.ranks_per_node = world / static_cast<std::int32_t>(*nodes);
}

/// Names of group arguments, such as tp_group.
struct GroupNames {
  std::optional<sim::GroupSet> operator()(YamlMap& map, std::string_view key) const {
    if (!map.has(key)) return std::nullopt;
    sim::GroupSet groups;
    map.attempt_each(map.texts(key), [&](const std::string& name) {
      try {
        groups |= sim::groups_named(std::array{name});
      } catch (const Error& error) {
        map.refuse(map.node(key), "names an unknown group: " + error.message());
      }
    });
    return groups;
  }
  void write(YAML::Emitter& out, const sim::GroupSet& value) const {
    const auto names = sim::arguments_of(value);
    put_value(out, std::vector<std::string>(names.begin(), names.end()));
  }
};

/// Modes of the rerun machine; unknown for an older job, which has none.
Choice<std::optional<sim::RerunMode>> rerun_modes() {
  Choice<std::optional<sim::RerunMode>> modes;
  for (const auto name : sim::rerun_modes()) {
    modes.choices.emplace_back(sim::rerun_mode_named(name), name);
  }
  modes.choices.emplace_back(std::nullopt, "unknown");
  return modes;
}

/// The members of a job that is one model.
Row<LifePlan> members_row() {
  auto members = row("ranks", &LifePlan::ranks, read_ranks);
  members.read = [read = members.read](YamlMap& map, std::string_view key, LifePlan& plan) {
    if (map.has(key) && !plan.modules.empty()) {
      map.fail(map.node(key), "names ranks, but the job has modules, each with its own ranks");
    }
    read(map, key, plan);
    require_place_for_each(plan.ranks.size(), plan.layout, map);
  };
  members.is_usual = [](const LifePlan& plan) {
    return plan.ranks.empty() && plan.modules.empty();
  };
  return members;
}

/// Reads the layout of a restart whose job is one model. From this life on, the job has no modules.
void read_one_model(YamlMap& restart, const Scenario& scenario, LifePlan& plan) {
  plan.layout = read_layout(restart, plan.layout.order, scenario.model);
  if (scenario.model.empty()) {
    restart.fail(restart.node("layout"),
                 "has a layout, but the job has modules; give each its own layout under 'modules'");
  }
  plan.modules.clear();
}

void read_life(YamlMap& map, LifePlan& plan) {
  read_rows(map, life_rows(), plan);
  read_rows(map, form_rows(), plan);
}

/// Refuses `sharding` in a restart that does not list modules: each module keeps its own sharding,
/// so the key would have no effect.
void require_meaning(YamlMap& restart, const LifePlan& plan) {
  if (plan.modules.empty() || !restart.has("sharding") || restart.has("modules")) return;
  restart.fail(restart.node("sharding"),
               "has a sharding for modules but names none; name the modules beside it");
}

/// Reads the modules of the first life, or its one model, with their layouts.
void read_ranks_of(YamlMap& job, Scenario& scenario, LifePlan& first) {
  read_modules(job, first);
  if (!first.modules.empty()) return;
  job.attempt([&] { scenario.model = read_model(job); });
  first.layout = read_layout(job, first.layout.order, scenario.model);
}

}  // namespace

const Rows<Scenario>& optimizer_rows() {
  static const Rows<Scenario> rows = {
      fixed_row<Scenario>(
          "kind", Written::kNeeded,
          [](YamlMap& map, std::string_view key, Scenario&) {
            map.needed(key, words({"adam"})(map, key));
          },
          [](YAML::Emitter& out, const Scenario&) { out << "adam"; }),
      row("sharding", &Scenario::optimizer_sharding, read_sharding, Written::kAlways),
      row("dim", &Scenario::shard_dim, Whole{0, kDimMax}),
  };
  return rows;
}

const Rows<Scenario>& job_rows() {
  using sim::GroupField;
  static const Rows<Scenario> rows = {
      row("seed", &Scenario::seed, Whole{0, INT64_MAX}, Written::kAlways),
      row("ranks_per_node", &Scenario::ranks_per_node, Whole{1, kWorldMax}),
      row("rerun_samples", &Scenario::rerun_samples, Whole{1, kWorldMax}),
      row("extra_tensor", &Scenario::extra_tensor, &YamlMap::flag),
      row("random_by_dp", &Scenario::random_by_dp, &YamlMap::flag),
      row("groups_differ_in", &Scenario::groups_differ_in,
          by_name({GroupField::kWdMult, GroupField::kLrMult, GroupField::kOfExperts})),
      row("schedule", &Scenario::schedule, Mapping<sim::Schedule>{schedule_rows(), check_schedule}),
  };
  return rows;
}

const Rows<LifePlan>& life_rows() {
  using Plan = LifePlan;
  using sim::GroupSource;
  using sim::RegistryUse;
  static const Rows<Plan> rows = {
      row("rerun", &Plan::rerun, rerun_modes()),
      members_row(),
      row("groups", &Plan::groups,
          by_name({GroupSource::kExplicit, GroupSource::kFallback, GroupSource::kHalf})),
      row("lacks", &Plan::lacks, GroupNames{}),
      row("fallback", &Plan::fallback, by_name({RegistryUse::kAllowed, RegistryUse::kForbidden})),
      row("forbids", &Plan::forbids, GroupNames{}),
      row("run", &Plan::run, &YamlMap::text),
      row("engine", &Plan::engine, &YamlMap::text),
      row("skips", &Plan::skips, &YamlMap::flag),
      row("format", &Plan::format,
          by_name(sim::checkpoint_formats(), sim::checkpoint_format_named)),
      row("rerun_template", &Plan::rerun_template, either<sim::RerunTemplate>("stored", "forced")),
      row("iterators", &Plan::iterators, either<sim::Wrapping>("wrapped", "plain")),
  };
  return rows;
}

const Rows<LifePlan>& form_rows() {
  static const Rows<LifePlan> rows = {
      row("group_order", &LifePlan::plain_first, either("decayed_first", "plain_first")),
      row("keys", &LifePlan::keys,
          by_name(std::array<std::string_view, 3>{"prefixed", "bare", "mixed"},
                  sim::key_form_named)),
  };
  return rows;
}

const Rows<LifePlan>& restart_rows() {
  using Plan = LifePlan;
  static const Rows<Plan> rows = {
      row("on", &Plan::other_device, either("same_device", "other_device")),
      row("adopts", &Plan::adopts, &YamlMap::texts),
      row("fails", &Plan::fails, &YamlMap::code),
      row("fails_says", &Plan::fails_says, &YamlMap::text),
      row("lie", &Plan::lie, Mapping<Lie>{lie_rows()}),
  };
  return rows;
}

void read_job(YamlMap job, Scenario& scenario) {
  job.attempt([&] {
    YamlMap optimizer = job.map("optimizer");
    scenario.optimizer_sharding = kFieldsDefault;
    read_rows(optimizer, optimizer_rows(), scenario);
    optimizer.refuse_unknown();
  });
  LifePlan first;
  first.optimizer_sharding = scenario.optimizer_sharding;
  const bool placed = job.attempt([&] { read_ranks_of(job, scenario, first); });
  for (const char* known : {"optimizer", "model", "layout"}) job.know(known);
  job.attempt([&] { read_life(job, first); }, placed);
  scenario.lives.push_back(std::move(first));
  read_rows(job, job_rows(), scenario);
  job.attempt([&] { read_nodes(job, scenario); }, placed);
  job.refuse_unknown();
}

LifePlan read_restart(YamlMap restart, const Scenario& scenario) {
  LifePlan plan = like_the_last(scenario);
  restart.attempt([&] {
    plan.optimizer_sharding = read_sharding(restart, "sharding").value_or(plan.optimizer_sharding);
  });
  const bool placed = restart.attempt([&] {
    read_modules(restart, plan);
    if (restart.has("layout")) read_one_model(restart, scenario, plan);
    require_meaning(restart, plan);
  });
  restart.know("layout");
  restart.attempt([&] { read_life(restart, plan); }, placed);
  restart.attempt([&] { read_load_choice(restart, plan); }, placed);
  read_rows(restart, restart_rows(), plan);
  restart.attempt(
      [&] {
        if (plan.lie) require_member(restart, "lie", plan.lie->rank, plan);
      },
      placed);
  restart.attempt([&] {
    if (plan.fails || plan.fails_says.empty()) return;
    restart.fail(restart.node("fails_says"),
                 "has 'says' for a refusal, but 'fails' does not name one");
  });
  restart.refuse_unknown();
  return plan;
}

LifePlan like_the_last(const Scenario& scenario) {
  LifePlan plan = scenario.lives.back();
  plan.actions.clear();
  for (const auto& row : restart_rows()) row.reset(plan);
  plan.load = {};
  plan.command.reset();
  return plan;
}

}  // namespace reprise::driver
