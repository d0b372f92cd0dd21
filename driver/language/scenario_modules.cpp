#include "driver/language/scenario_modules.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "core/base/print.hpp"
#include "driver/language/scenario_layout.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

using sim::ModuleConfig;

constexpr std::size_t kModulesMax = 8;
constexpr std::int64_t kLossScaleMax = std::int64_t{1} << 30;
constexpr std::int64_t kGrowthMax = 10000;
constexpr std::array<std::string_view, 2> kPlaces = {"disjoint", "colocated"};
constexpr std::array<std::string_view, 2> kGroupOrders = {"decayed_first", "plain_first"};
constexpr std::array<std::string_view, 3> kKeyForms = {"prefixed", "bare", "mixed"};

/// Checks a module's name by the rule that the job applies to names.
void require_name(YamlMap& map, const std::string& key, const std::string& name) {
  const std::array<ModuleConfig, 1> alone = {ModuleConfig{.name = name}};
  try {
    if (name.empty()) throw Error(Code::kUsage, "a module has no name");
    sim::check_modules(alone, 1);
  } catch (const Error& error) {
    map.fail(map.node(key), "gives a module an impossible name: " + error.message());
  }
}

/// Reads a loss scale, which must be a power of two, because only then is the training step exact.
void read_loss_scale(YamlMap& map, sim::LossScale& loss_scale) {
  if (const auto scale = map.integer_in("loss_scale", 1, kLossScaleMax)) {
    if (!std::has_single_bit(static_cast<std::uint64_t>(*scale))) {
      map.fail(map.node("loss_scale"), "needs a power of two under 'loss_scale'");
    }
    loss_scale.scale = static_cast<double>(*scale);
  }
  loss_scale.growth_interval =
      map.integer_in("growth_interval", 1, kGrowthMax).value_or(loss_scale.growth_interval);
}

/// Reads one module. `before` is the module of that name in the previous life, or null.
ModuleConfig read_module(YamlMap map, const std::string& name, const ModuleConfig* before,
                         sim::Sharding sharding) {
  ModuleConfig module{.name = name};
  const bool known = before != nullptr && !map.has("model");
  if (known) map.know("model");
  map.attempt([&] { module.model = known ? before->model : read_model(map); });
  const sim::Layout usual;
  const bool placed = map.attempt([&] {
    module.layout =
        read_layout(map, before != nullptr ? before->layout.order : usual.order, module.model);
  });
  map.attempt(
      [&] {
        for (const auto rank : read_ranks(map)) module.ranks.push_back({rank});
        require_place_for_each(module.ranks.size(), module.layout, map);
      },
      placed);
  map.attempt(
      [&] { module.optimizer_sharding = map.has("sharding") ? read_sharding(map) : sharding; });
  map.know("sharding");
  map.attempt([&] { read_loss_scale(map, module.loss_scale); });
  module.frozen = map.flag("frozen").value_or(false);
  map.refuse_unknown();
  return module;
}

std::vector<ModuleConfig> read_list(YamlMap& map, const IncarnationPlan& plan) {
  YamlMap list = map.map("modules");
  const auto names = list.keys();
  if (names.empty() || names.size() > kModulesMax) {
    map.fail(map.node("modules"), "needs 1 to " + std::to_string(kModulesMax) +
                                      " modules under 'modules': {name: {model, layout}}");
  }
  std::vector<ModuleConfig> modules;
  bool right = true;
  for (const auto& name : names) {
    const auto read = [&] {
      require_name(list, name, name);
      modules.push_back(read_module(list.map(name), name, sim::module_named(plan.modules, name),
                                    plan.optimizer_sharding));
    };
    right = list.attempt(read) && right;
  }
  if (!right) throw Unread();
  return modules;
}

/// Puts every module's grid on the same ranks, starting at rank 0.
std::vector<ModuleConfig> colocated(std::vector<ModuleConfig> modules, YamlMap& map) {
  const std::int32_t size = modules.front().layout.world_size();
  for (auto& module : modules) {
    if (module.layout.world_size() != size) {
      map.fail(map.node("place"), "puts modules on the same ranks, but " + modules.front().name +
                                      " has " + std::to_string(size) + ", " + module.name + " " +
                                      std::to_string(module.layout.world_size()) +
                                      "; give their layouts the same size");
    }
    if (!module.ranks.empty()) continue;
    for (std::int32_t rank = 0; rank < size; ++rank) module.ranks.push_back({rank});
  }
  return modules;
}

/// For a job with modules: refuses keys that must be set for each module instead.
void refuse_beside(YamlMap& map) {
  for (const char* key : {"model", "layout", "ranks"}) {
    if (!map.has(key)) continue;
    map.fail(map.node(key), "says " + std::string(key) +
                                " for a job of modules; each has its own, under 'modules'");
  }
}

std::vector<std::string> read_names(YamlMap& map, const std::string& key) {
  auto names = map.texts(key);
  map.attempt_each(names, [&](const std::string& name) { require_name(map, key, name); });
  return names;
}

void require_added(YamlMap& restart, const IncarnationPlan& plan, const std::string& name) {
  if (sim::module_named(plan.modules, name) != nullptr) return;
  std::vector<std::string> names;
  for (const auto& module : plan.modules) names.push_back(module.name);
  const std::string near = closest(name, names);
  restart.fail(restart.node("adds"),
               "adds the module '" + name + "', which the job does not have" +
                   (near.empty() ? "; name it under 'modules'" : "; did you mean '" + near + "'?"));
}

}  // namespace

void read_modules(YamlMap& map, IncarnationPlan& plan) {
  const bool together = map.word("place", kPlaces) == "colocated";
  map.know("modules");
  if (!map.has("modules") && !map.has("place")) return;
  if (!map.has("modules") && plan.modules.empty()) {
    map.fail(map.node("place"), "says where to place modules but has none");
  }
  refuse_beside(map);
  if (map.has("modules")) {
    plan.modules = read_list(map, plan);
    plan.layout = {};
    plan.ranks.clear();
  } else {
    for (auto& module : plan.modules) module.ranks.clear();
  }
  plan.modules =
      together ? colocated(std::move(plan.modules), map) : side_by_side(std::move(plan.modules));
  if (plan.world_size() > kWorldMax) {
    map.fail(map.node("modules"), "needs " + std::to_string(plan.world_size()) +
                                      " ranks for its modules; a world has up to " +
                                      std::to_string(kWorldMax));
  }
}

sim::LoadChoice read_load_choice(YamlMap& restart, const IncarnationPlan& plan) {
  const auto leaves = [&restart](const char* key) { return restart.flag(key).value_or(false); };
  sim::LoadChoice choice;
  choice.optimizer = !leaves("no_load_optim");
  choice.schedule = !leaves("no_load_scheduler");
  choice.random = !leaves("no_load_rng");
  choice.finetune = leaves("finetune");
  choice.adds = read_names(restart, "adds");
  restart.attempt_each(choice.adds,
                       [&](const std::string& name) { require_added(restart, plan, name); });
  choice.drops = read_names(restart, "drops");
  restart.attempt_each(choice.drops, [&](const std::string& name) {
    if (sim::module_named(plan.modules, name) == nullptr) return;
    restart.fail(restart.node("drops"), "drops the module '" + name + "', which the job still has");
  });
  return choice;
}

void read_forms(YamlMap& map, IncarnationPlan& plan) {
  if (const auto order = map.word("group_order", kGroupOrders)) {
    plan.plain_first = *order == "plain_first";
  }
  if (const auto keys = map.word("keys", kKeyForms)) plan.keys = sim::key_form_named(*keys).value();
}

}  // namespace reprise::driver
