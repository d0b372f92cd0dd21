#include "driver/random/case_distribution.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include "driver/random/outcome_rules.hpp"
#include "driver/record/history.hpp"

namespace reprise::driver {
namespace {

using sim::Layout;
using sim::ModuleConfig;
using Values = std::set<std::pair<std::string, std::string>>;  // pairs of axis and value

constexpr std::size_t kNameWidth = 12;

std::int32_t sharding_ranks(const Layout& layout) {
  return sim::copies_of_parts(layout) / layout.dp_replicate;
}

/// Returns the kind of change that a new value of this field counts as. Returns nothing for dp,
/// because a new dp can change the number of ranks that shard, the number of copies, or both.
std::string change_of(const sim::LayoutField& field) {
  if (field.name == "dp") return {};
  if (field.name == "etp") return "EP";
  if (field.name == "vpp") return "PP";
  if (field.name == "dp_replicate") return "HSDP";
  std::string change(field.name);
  std::transform(change.begin(), change.end(), change.begin(), [](char c) {
    return static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  });
  return change;
}

std::string world_range(std::int32_t world) {
  if (world <= 2) return std::to_string(world);
  return world <= 4 ? "3-4" : world <= 8 ? "5-8" : "9-16";
}

std::string range_of(std::int32_t size) {
  return size == 1 ? "1" : size == 2 ? "2" : size <= 4 ? "3-4" : "5+";
}

void add_layout(const Layout& layout, Values& values) {
  for (const auto axis : sim::kAxisNames) {
    values.emplace(axis, range_of(layout.size_of(axis)));
  }
  if (layout.dp_replicate > 1) values.emplace("layout", "hsdp");
  if (layout.vpp > 1) values.emplace("layout", "vpp");
  if (!layout.stage_layers.empty()) values.emplace("layout", "stage_layers");
  if (layout.etp != 0 && layout.etp != layout.tp) values.emplace("layout", "etp");
}

std::int32_t job_size(const LifePlan& plan) { return sim::job_members(modules_of(plan)).size(); }

bool is_colocated(const LifePlan& plan) {
  std::int32_t places = 0;
  for (const auto& module : plan.modules) places += module.layout.world_size();
  return places > job_size(plan);
}

void add_grids(const Scenario& scenario, const LifePlan& plan, Values& values) {
  const auto modules = modules_of(plan);
  values.emplace("world", world_range(job_size(plan)));
  values.emplace("modules", std::to_string(modules.size()));
  for (const auto& module : modules) {
    add_layout(module.layout, values);
    values.emplace("sharding", name_of(module.optimizer_sharding));
    values.emplace("model", module.name.empty() ? scenario.model : module.model);
    if (module.frozen) values.emplace("module", "frozen");
    if (module.loss_scale.overflows()) values.emplace("module", "overflows");
  }
  if (modules.size() > 1) values.emplace("place", is_colocated(plan) ? "colocated" : "disjoint");
}

void add_rerun(const LifePlan& plan, Values& values) {
  const bool validates = plan.rerun != sim::RerunMode::kDisabled;
  values.emplace("rerun", validates ? "validated" : "disabled");
  if (!validates) return;
  values.emplace("format", sim::name_of(plan.format));
  values.emplace("iterators", plan.iterators == sim::Wrapping::kPlain ? "plain" : "wrapped");
  values.emplace("template",
                 plan.rerun_template == sim::RerunTemplate::kForced ? "forced" : "stored");
}

void add_actions(const std::vector<Action>& actions, bool last, Values& values) {
  std::int64_t steps = 0;
  for (const auto& action : actions) {
    if (const auto* train = std::get_if<TrainAction>(&action)) steps += train->steps;
    if (std::holds_alternative<LoadAction>(action)) values.emplace("steps", "load in place");
  }
  if (last) values.emplace("k", std::to_string(steps));
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  return std::to_string((100 * part + whole / 2) / std::max<std::uint64_t>(whole, 1)) + "%";
}

}  // namespace

std::vector<std::string> changes_between(const LifePlan& saved, const LifePlan& loading) {
  std::vector<std::string> changes;
  const auto note = [&changes](bool changed, const std::string& name) {
    const bool noted = std::find(changes.begin(), changes.end(), name) != changes.end();
    if (changed && !noted) changes.push_back(name);
  };
  const auto before = modules_of(saved);
  for (const auto& module : modules_of(loading)) {
    const ModuleConfig* other = sim::module_named(before, module.name);
    if (other == nullptr) continue;
    const Layout& a = other->layout;
    const Layout& b = module.layout;
    for (const auto& field : sim::kLayoutFields) {
      const std::string change = change_of(field);
      const bool other_size = sim::size_in_effect(a, field) != sim::size_in_effect(b, field);
      note(other_size && !change.empty(), change);
    }
    note(a.stage_layers != b.stage_layers, "PP");
    note(sharding_ranks(a) != sharding_ranks(b), "FSDP");
    note(a.order != b.order, "order");
    note(other->optimizer_sharding != module.optimizer_sharding, "sharding");
  }
  note(job_size(saved) < job_size(loading), "world up");
  note(job_size(saved) > job_size(loading), "world down");
  note(is_colocated(saved) != is_colocated(loading), "place");
  return changes;
}

void CaseDistribution::add(const Scenario& scenario) {
  Values values;
  const auto& lives = scenario.lives;
  values.emplace("lives", std::to_string(lives.size()));
  values.emplace("dim", std::to_string(scenario.shard_dim));
  values.emplace("strictness",
                 scenario.checkpoint.strictness == Strictness::kRaiseAll ? "raise_all" : "others");
  const CheckpointPlan& plan = scenario.checkpoint;
  values.emplace("saves", !plan.async ? "waited for" : plan.late ? "beside, late" : "beside");
  if (plan.async) values.emplace("in flight", std::to_string(plan.in_flight));
  values.emplace("reads", plan.reads_once ? "once" : "by each");
  if (plan.staging_bytes > 0) values.emplace("saves", "in small staging");
  values.emplace("nodes", scenario.ranks_per_node > 0 ? "some" : "one");
  values.emplace("expected", scenario.expect.refusal ? "refusal" : "continuity");
  for (std::size_t i = 0; i < lives.size(); ++i) {
    add_grids(scenario, lives[i], values);
    add_rerun(lives[i], values);
    add_actions(lives[i].actions, i + 1 == lives.size(), values);
    const auto saves = saves_before(scenario, i);
    if (i == 0 || saves.empty()) continue;
    const LifePlan& saver = lives[saves.back().life];
    const auto changes = changes_between(saver, lives[i]);
    for (const auto& change : changes) values.emplace("change", change);
    if (changes.empty()) values.emplace("change", "none");
    if (changes.size() > 2) values.emplace("change", "3 or more");
  }
  for (const auto& [axis, value] : values) ++counts_[axis][value];
  ++cases_;
}

std::uint64_t CaseDistribution::count(const std::string& axis, const std::string& value) const {
  const auto values = counts_.find(axis);
  if (values == counts_.end()) return 0;
  const auto found = values->second.find(value);
  return found == values->second.end() ? 0 : found->second;
}

std::string CaseDistribution::table() const {
  std::string text = std::to_string(cases_) + " cases\n";
  for (const auto& [axis, values] : counts_) {
    text += "  " + axis + std::string(kNameWidth - std::min(axis.size(), kNameWidth - 1), ' ');
    const char* gap = "";
    for (const auto& [value, count] : values) {
      text += gap + value + " " + percent(count, cases_);
      gap = ", ";
    }
    text += "\n";
  }
  return text;
}

}  // namespace reprise::driver
