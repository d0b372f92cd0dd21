#include "driver/language/scenario_job.hpp"

#include <array>
#include <cstdint>

#include "driver/language/scenario_faults.hpp"
#include "driver/language/scenario_layout.hpp"
#include "driver/language/scenario_modules.hpp"

namespace reprise::driver {
namespace {

constexpr std::int64_t kDimMax = 15;
/// Value of `rerun` for an older job, which has no rerun machine.
constexpr std::string_view kOlderJob = "unknown";
constexpr std::array<std::string_view, 1> kOptimizers = {"adam"};
constexpr std::array<std::string_view, 2> kTemplates = {"stored", "forced"};
constexpr std::array<std::string_view, 2> kIterators = {"wrapped", "plain"};
constexpr sim::Sharding kFieldsDefault = sim::Sharding::kDpReshardable;
constexpr std::int64_t kSamplesMax = 1'000'000'000;
constexpr std::array<std::string_view, 2> kDevices = {"same_device", "other_device"};

void read_optimizer(YamlMap optimizer, Scenario& scenario) {
  optimizer.attempt([&] { optimizer.needed("kind", optimizer.word("kind", kOptimizers)); });
  optimizer.attempt([&] {
    scenario.optimizer_sharding =
        optimizer.has("sharding") ? read_sharding(optimizer) : kFieldsDefault;
  });
  optimizer.know("sharding");
  scenario.shard_dim = optimizer.integer_in("dim", 0, kDimMax).value_or(0);
  optimizer.refuse_unknown();
}

/// Reads a schedule. Its lengths are in samples, and a batch has 8 samples. The first step uses the
/// rate at 0 samples.
void read_schedule(YamlMap map, sim::Schedule& schedule) {
  const auto samples = [&map](const char* key, std::int64_t& into) {
    into = map.integer_in(key, 0, kSamplesMax).value_or(into);
  };
  samples("lr_warmup_steps", schedule.lr_warmup_steps);
  samples("lr_decay_steps", schedule.lr_decay_steps);
  samples("wd_incr_steps", schedule.wd_incr_steps);
  using sim::RateDecay;
  if (const auto decay = map.one_of(
          "lr_decay_style", {RateDecay::kCosine, RateDecay::kLinear, RateDecay::kConstant})) {
    schedule.lr_decay_style = *decay;
  }
  if (const auto lr = map.number("max_lr")) schedule.max_lr = *lr;
  if (const auto lr = map.number("min_lr")) schedule.min_lr = *lr;
  map.refuse_unknown();
  if (schedule.lr_decay_steps <= schedule.lr_warmup_steps) {
    map.fail(map.node("lr_decay_steps"), "must end its decay after its warm-up");
  }
}

void read_nodes(YamlMap& job, Scenario& scenario) {
  const std::int32_t world = scenario.incarnations.front().world_size();
  const auto per_node = job.integer_in("ranks_per_node", 1, kWorldMax);
  const auto nodes = job.integer_in("nodes", 1, kWorldMax);
  if (per_node && nodes) job.fail(job.node("nodes"), "has both nodes and ranks_per_node");
  if (nodes && world % *nodes != 0) {
    job.fail(job.node("nodes"), "can't put " + std::to_string(world) + " ranks evenly on " +
                                    std::to_string(*nodes) + " nodes; give ranks_per_node");
  }
  if (nodes) scenario.ranks_per_node = world / static_cast<std::int32_t>(*nodes);
  if (per_node) scenario.ranks_per_node = static_cast<std::int32_t>(*per_node);
}

void read_members(YamlMap& map, IncarnationPlan& plan) {
  if (map.has("ranks") && !plan.modules.empty()) {
    map.fail(map.node("ranks"), "names ranks, but the job has modules, each with its own ranks");
  }
  if (map.has("ranks")) plan.ranks.clear();
  for (const auto rank : read_ranks(map)) plan.ranks.push_back(rank);
  require_place_for_each(plan.ranks.size(), plan.layout, map);
}

/// Reads names of group arguments, such as tp_group.
void read_groups(YamlMap& map, const char* key, sim::GroupSet& groups) {
  if (!map.has(key)) return;
  groups.reset();
  map.attempt_each(map.texts(key), [&](const std::string& name) {
    try {
      groups |= sim::groups_named(std::array{name});
    } catch (const Error& error) {
      map.refuse(map.node(key), "names an unknown group: " + error.message());
    }
  });
}

void read_rerun(YamlMap& map, IncarnationPlan& plan) {
  std::vector<std::string_view> words(sim::rerun_modes().begin(), sim::rerun_modes().end());
  words.push_back(kOlderJob);
  const auto mode = map.word("rerun", words);
  if (!mode) return;
  plan.rerun.reset();
  if (*mode != kOlderJob) plan.rerun = sim::rerun_mode_named(*mode);
}

void read_life(YamlMap& map, IncarnationPlan& plan) {
  map.attempt([&] { read_members(map, plan); });
  read_forms(map, plan);
  read_rerun(map, plan);
  if (const auto format = map.word("format", sim::checkpoint_formats())) {
    plan.format = sim::checkpoint_format_named(*format);
  }
  if (const auto asks = map.word("rerun_template", kTemplates)) {
    plan.rerun_template =
        *asks == "forced" ? sim::RerunTemplate::kForced : sim::RerunTemplate::kAsStored;
  }
  if (const auto iterators = map.word("iterators", kIterators)) {
    plan.iterators = *iterators == "plain" ? sim::Wrapping::kPlain : sim::Wrapping::kWrapped;
  }
  using sim::GroupSource;
  using sim::RegistryUse;
  plan.groups =
      map.one_of("groups", {GroupSource::kExplicit, GroupSource::kFallback, GroupSource::kHalf})
          .value_or(plan.groups);
  plan.fallback = map.one_of("fallback", {RegistryUse::kAllowed, RegistryUse::kForbidden})
                      .value_or(plan.fallback);
  read_groups(map, "lacks", plan.lacks);
  read_groups(map, "forbids", plan.forbids);
  if (const auto run = map.text("run")) plan.run = *run;
  if (const auto engine = map.text("engine")) plan.engine = *engine;
  if (const auto skips = map.flag("skips")) plan.skips = *skips;
}

/// Reads the layout of a restart whose job is one model. From this life on, the job has no modules.
void read_one_model(YamlMap& restart, const Scenario& scenario, IncarnationPlan& plan) {
  plan.layout = read_layout(restart, plan.layout.order, scenario.model);
  if (scenario.model.empty()) {
    restart.fail(restart.node("layout"),
                 "has a layout, but the job has modules; give each its own layout under 'modules'");
  }
  plan.modules.clear();
}

/// Refuses `sharding` in a restart that does not list modules: each module keeps its own sharding,
/// so the key would have no effect.
void require_meaning(YamlMap& restart, const IncarnationPlan& plan) {
  if (plan.modules.empty() || !restart.has("sharding") || restart.has("modules")) return;
  restart.fail(restart.node("sharding"),
               "has a sharding for modules but names none; name the modules beside it");
}

/// Reads the modules of the first life, or its one model, with their layouts.
void read_ranks_of(YamlMap& job, Scenario& scenario, IncarnationPlan& first) {
  read_modules(job, first);
  if (!first.modules.empty()) return;
  job.attempt([&] { scenario.model = read_model(job); });
  first.layout = read_layout(job, first.layout.order, scenario.model);
}

}  // namespace

void read_job(YamlMap job, Scenario& scenario) {
  job.attempt([&] { read_optimizer(job.map("optimizer"), scenario); });
  IncarnationPlan first;
  first.optimizer_sharding = scenario.optimizer_sharding;
  const bool placed = job.attempt([&] { read_ranks_of(job, scenario, first); });
  for (const char* known : {"optimizer", "model", "layout"}) job.know(known);
  job.attempt([&] { read_life(job, first); }, placed);
  scenario.incarnations.push_back(std::move(first));
  if (const auto seed = job.integer_in("seed", 0, INT64_MAX)) {
    scenario.seed = static_cast<std::uint64_t>(*seed);
  }
  scenario.extra_tensor = job.flag("extra_tensor").value_or(false);
  scenario.random_by_dp = job.flag("random_by_dp").value_or(false);
  using sim::GroupField;
  scenario.groups_differ_in =
      job.one_of("groups_differ_in",
                 {GroupField::kWdMult, GroupField::kLrMult, GroupField::kOfExperts})
          .value_or(scenario.groups_differ_in);
  scenario.rerun_samples = job.integer_in("rerun_samples", 1, kWorldMax).value_or(0);
  job.attempt([&] {
    if (job.has("schedule")) read_schedule(job.map("schedule"), scenario.schedule);
  });
  job.know("schedule");
  job.attempt([&] { read_nodes(job, scenario); }, placed);
  job.refuse_unknown();
}

IncarnationPlan read_restart(YamlMap restart, const Scenario& scenario) {
  IncarnationPlan plan = like_the_last(scenario);
  restart.attempt([&] {
    if (restart.has("sharding")) plan.optimizer_sharding = read_sharding(restart);
  });
  const bool placed = restart.attempt([&] {
    read_modules(restart, plan);
    if (restart.has("layout")) read_one_model(restart, scenario, plan);
    require_meaning(restart, plan);
  });
  for (const char* known : {"layout", "sharding", "adds", "drops"}) {
    restart.know(known);
  }
  restart.attempt([&] { read_life(restart, plan); }, placed);
  restart.attempt([&] { plan.load = read_load_choice(restart, plan); }, placed);
  plan.other_device = restart.word("on", kDevices) == "other_device";
  plan.adopts = restart.texts("adopts");
  plan.fails = restart.code("fails");
  plan.fails_says = restart.text("fails_says").value_or("");
  restart.attempt(
      [&] {
        if (!restart.has("lie")) return;
        plan.lie = read_lie(restart.map("lie"));
        require_member(restart, "lie", plan.lie->rank, plan);
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

IncarnationPlan like_the_last(const Scenario& scenario) {
  IncarnationPlan plan = scenario.incarnations.back();
  plan.actions.clear();
  plan.other_device = false;
  plan.adopts.clear();
  plan.fails.reset();
  plan.lie.reset();
  plan.fails_says.clear();
  plan.load = {};
  plan.command.reset();
  return plan;
}

}  // namespace reprise::driver
