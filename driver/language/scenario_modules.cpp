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

/// Checks a module's name by the rule that the job applies to names.
void require_name(YamlMap& map, std::string_view key, const std::string& name) {
  const std::array<ModuleConfig, 1> alone = {ModuleConfig{.name = name}};
  try {
    if (name.empty()) throw Error(Code::kUsage, "a module has no name");
    sim::check_modules(alone, 1);
  } catch (const Error& error) {
    map.fail(map.node(key), "gives a module an impossible name: " + error.message());
  }
}

/// A loss scale, which must be a power of two, because only then is the training step exact.
struct LossScaleKind {
  std::optional<std::int64_t> operator()(YamlMap& map, std::string_view key) const {
    const auto scale = map.integer_in(key, 1, kLossScaleMax);
    if (scale && !std::has_single_bit(static_cast<std::uint64_t>(*scale))) {
      map.fail(map.node(key), "needs a power of two under '" + std::string(key) + "'");
    }
    return scale;
  }
  void write(YAML::Emitter& out, double scale) const { out << static_cast<std::int64_t>(scale); }
};

std::vector<std::string> read_names(YamlMap& map, std::string_view key) {
  auto names = map.texts(key);
  map.attempt_each(names, [&](const std::string& name) { require_name(map, key, name); });
  return names;
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
        for (const auto rank : read_ranks(map, "ranks")) module.ranks.push_back({rank});
        require_place_for_each(module.ranks.size(), module.layout, map);
      },
      placed);
  module.optimizer_sharding = sharding;
  read_rows(map, module_rows(), module);
  map.refuse_unknown();
  return module;
}

std::vector<ModuleConfig> read_list(YamlMap& map, const LifePlan& plan) {
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

void require_added(YamlMap& restart, const LifePlan& plan, const std::string& name) {
  if (sim::module_named(plan.modules, name) != nullptr) return;
  std::vector<std::string> names;
  for (const auto& module : plan.modules) names.push_back(module.name);
  const std::string near = closest(name, names);
  restart.fail(restart.node("adds"),
               "adds the module '" + name + "', which the job does not have" +
                   (near.empty() ? "; name it under 'modules'" : "; did you mean '" + near + "'?"));
}

}  // namespace

void read_modules(YamlMap& map, LifePlan& plan) {
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

const Rows<ModuleConfig>& module_rows() {
  static const Rows<ModuleConfig> rows = {
      row("sharding", &ModuleConfig::optimizer_sharding, read_sharding, Written::kAlways),
      row<ModuleConfig>(
          "loss_scale", [](auto& module) -> auto& { return module.loss_scale.scale; },
          LossScaleKind{}),
      row<ModuleConfig>(
          "growth_interval",
          [](auto& module) -> auto& { return module.loss_scale.growth_interval; },
          Whole{1, kGrowthMax}),
      row("frozen", &ModuleConfig::frozen, &YamlMap::flag),
  };
  return rows;
}

const Rows<sim::LoadChoice>& load_rows() {
  using Load = sim::LoadChoice;
  static const Rows<Load> rows = {
      row("no_load_optim", &Load::optimizer, NotFlag{}),
      row("no_load_scheduler", &Load::schedule, NotFlag{}),
      row("no_load_rng", &Load::random, NotFlag{}),
      row("finetune", &Load::finetune, &YamlMap::flag),
      row("adds", &Load::adds, read_names),
      row("drops", &Load::drops, read_names),
  };
  return rows;
}

void read_load_choice(YamlMap& restart, LifePlan& plan) {
  read_rows(restart, load_rows(), plan.load);
  restart.attempt_each(plan.load.adds,
                       [&](const std::string& name) { require_added(restart, plan, name); });
  restart.attempt_each(plan.load.drops, [&](const std::string& name) {
    if (sim::module_named(plan.modules, name) == nullptr) return;
    restart.fail(restart.node("drops"), "drops the module '" + name + "', which the job still has");
  });
}

}  // namespace reprise::driver
