#include "driver/language/scenario_steps.hpp"

#include <algorithm>
#include <array>

#include "core/base/codes.hpp"
#include "core/save/commit.hpp"
#include "core/save/phases.hpp"
#include "core/save/retention.hpp"
#include "driver/language/fault_specs.hpp"
#include "driver/language/scenario_job.hpp"
#include "reprise/error.hpp"
#include "sim/faults/checkpoint_file.hpp"

namespace reprise::driver {
namespace {

constexpr std::int64_t kStepsMax = 10000;
constexpr std::int64_t kHighestRank = 1023;
constexpr std::int64_t kCountMax = 1'000'000'000;
constexpr std::array<std::string_view, 3> kFires = {"yes", "no", "maybe"};

constexpr std::array<std::string_view, 9> kKnown = {
    "train", "save", "load", "bad_result", "exits", "fault", "damage", "restart", "incarnation"};
constexpr const char* kSteps =
    "steps are: train: N, save, finalize, reallocate, load, bad_result, exits: CODE, fault, "
    "damage, release, restart, incarnation";

Failing read_fails(YamlMap& map) {
  const auto text = map.text("fails");
  if (!text) return {};
  for (const auto how : {Failing::How::kAny, Failing::How::kMaybe}) {
    if (*text == to_string(Failing{how})) return {how};
  }
  const auto code = code_named(*text);
  if (code && is_error(*code)) return {Failing::How::kBy, *code};
  map.fail(map.node("fails"), "knows no code " + *text + "; it may be one, or 'any', or 'maybe'");
}

TrainAction read_train(YamlMap& step) {
  if (step.node("train").IsScalar()) return {*step.integer_in("train", 0, kStepsMax)};
  YamlMap map = step.map("train");
  if (!map.has("steps")) map.required("steps");
  TrainAction train{*map.integer_in("steps", 0, kStepsMax)};
  train.save_interval = map.integer_in("save_interval", 1, kStepsMax).value_or(0);
  map.refuse_unknown();
  return train;
}

SaveAction read_save(YamlMap map) {
  SaveAction save;
  save.optimizer = !map.flag("no_optim").value_or(false);
  save.random = !map.flag("no_rng").value_or(false);
  save.kind =
      map.one_of("kind", {CheckpointKind::kTraining, CheckpointKind::kWeights}).value_or(save.kind);
  save.fails = read_fails(map);
  save.async = map.flag("async");
  map.refuse_unknown();
  return save;
}

std::int32_t read_rank(YamlMap& map) {
  return static_cast<std::int32_t>(map.integer_in("rank", 0, kHighestRank).value_or(0));
}

/// Refuses a fault on a rank that does nothing in this life, because the fault would never fire.
void require_member(YamlMap& map, const char* key, std::int64_t rank, const IncarnationPlan& plan) {
  const bool fits = rank >= 0 && rank <= kHighestRank;
  if (fits && plan.has_member(static_cast<std::int32_t>(rank))) return;
  map.fail(map.node(map.has(key) ? key : "kind"),
           "plans something at rank " + std::to_string(rank) +
               ", which is no member of this life's job; its members are " + plan.members_text());
}

BadResultAction read_bad_result(YamlMap map, const IncarnationPlan& plan) {
  BadResultAction bad;
  if (!map.has("kind")) map.required("kind");
  bad.kind = sim::result_fault_named(*map.word("kind", sim::result_fault_names())).value();
  bad.ranks = {read_rank(map)};
  if (map.has("ranks")) {
    if (map.has("rank")) map.fail(map.node("ranks"), "has both rank and ranks");
    bad.ranks.clear();
  } else {
    require_member(map, "rank", bad.ranks.front(), plan);
  }
  for (const auto rank : map.integers("ranks")) {
    require_member(map, "ranks", rank, plan);
    bad.ranks.push_back(static_cast<std::int32_t>(rank));
  }
  if (bad.ranks.empty()) map.fail(map.node("ranks"), "names no rank");
  bad.fatal = map.flag("fatal").value_or(true);
  if (const auto value = map.word("value", sim::bad_values())) {
    if (!bad.fatal) map.fail(map.node("value"), "gives a value to a spike, which has its own");
    bad.value = sim::bad_value_named(*value).value();
  }
  bad.call = map.integer_in("call", 0, kCountMax).value_or(0);
  bad.run = map.integer_in("run", 0, kCountMax).value_or(0);
  map.refuse_unknown();
  return bad;
}

ExitAction read_exit(YamlMap& step) {
  if (step.node("exits").IsScalar()) {
    return {static_cast<int>(*step.integer_in("exits", 0, UINT8_MAX)), {}};
  }
  YamlMap map = step.map("exits");
  if (!map.has("code")) map.required("code");
  ExitAction exits{static_cast<int>(*map.integer_in("code", 0, UINT8_MAX)), map.flag("saves")};
  map.refuse_unknown();
  return exits;
}

std::optional<sim::FileKind> read_file_kind(YamlMap& map, const char* key) {
  const auto name = map.word(key, sim::file_kind_names());
  return name ? sim::file_kind_named(*name) : std::nullopt;
}

void read_place(YamlMap& map, FaultAction& fault) {
  std::vector<std::string_view> phases(phases_of_save().begin(), phases_of_save().end());
  phases.insert(phases.end(), phases_of_load().begin(), phases_of_load().end());
  phases.emplace_back("take");
  std::vector<std::string_view> steps(kCommitSteps.begin(), kCommitSteps.end());
  steps.insert(steps.end(), kPrepareSteps.begin(), kPrepareSteps.end());
  steps.insert(steps.end(), kRetentionSteps.begin(), kRetentionSteps.end());
  fault.phase = map.word("phase", phases).value_or("");
  fault.step = map.word("step", steps).value_or("");
  if (const auto moment = map.word("moment", sim::moment_names())) {
    fault.moment = sim::moment_named(*moment).value();
  }
  fault.nth = map.integer_in("nth", 0, kCountMax).value_or(0);
  fault.file = read_file_kind(map, "file");
}

/// Returns the names of all faults except bad results, which are a separate step.
std::vector<std::string_view> world_faults() {
  auto names = sim::fault_names();
  std::erase(names, sim::name_of(sim::FaultKind::kBadResult));
  return names;
}

FaultAction read_fault(YamlMap map, const IncarnationPlan& plan) {
  FaultAction fault;
  if (!map.has("kind")) map.required("kind");
  fault.kind = sim::fault_named(*map.word("kind", world_faults())).value();
  fault.rank = read_rank(map);
  require_member(map, "rank", fault.rank, plan);
  read_place(map, fault);
  fault.delay_ms = map.integer_in("delay_ms", 0, kCountMax).value_or(0);
  fault.bit = map.integer_in("bit", 0, kCountMax).value_or(0);
  const std::string fires = map.word("fires", kFires).value_or("yes");
  fault.fires = fires == "yes" ? Fires::kYes : fires == "no" ? Fires::kNo : Fires::kMaybe;
  map.refuse_unknown();
  try {
    sim::require_possible(spec_of(fault));
  } catch (const Error& error) {
    map.fail(map.node("kind"), "can't be: " + error.message());
  }
  return fault;
}

DamageAction read_damage(YamlMap map) {
  DamageAction damage;
  if (!map.has("what")) map.required("what");
  damage.what = *read_file_kind(map, "what");
  damage.rank = read_rank(map);
  damage.step = map.integer_in("step", 0, kCountMax);
  damage.byte = map.integer_in("byte", -kCountMax, kCountMax).value_or(0);
  damage.bit = static_cast<std::int32_t>(map.integer_in("bit", 0, 7).value_or(0));
  damage.cut = map.integer_in("cut", 1, kCountMax);
  damage.remove = map.flag("remove").value_or(false);
  const bool flips = map.has("byte") || map.has("bit");
  if (int{flips} + int{damage.cut.has_value()} + int{damage.remove} > 1) {
    map.fail(map.node("what"), "has several of byte with bit, cut, remove; name one");
  }
  map.refuse_unknown();
  return damage;
}

/// Reads `- save`, `- finalize`, `- reallocate`, `- load`, `- release`, `- restart`.
void read_word(const YamlMap& top, const YAML::Node& node, int number, Scenario& scenario) {
  auto& actions = scenario.incarnations.back().actions;
  const std::string& word = node.Scalar();
  if (word == "save") {
    actions.emplace_back(SaveAction{});
  } else if (word == "finalize") {
    actions.emplace_back(FinalizeAction{});
  } else if (word == "reallocate") {
    actions.emplace_back(ReallocateAction{});
  } else if (word == "load") {
    actions.emplace_back(LoadAction{});
  } else if (word == "release") {
    actions.emplace_back(ReleaseAction{});
  } else if (word == "restart") {
    scenario.incarnations.push_back(like_the_last(scenario));
  } else {
    top.fail(node, "has a step " + std::to_string(number) + " '" + word + "'; " + kSteps);
  }
}

/// Reads `- incarnation: {command: [...]}`. It becomes the first life if no other life precedes it.
void add_foreign(ForeignProgram foreign, Scenario& scenario) {
  const bool first = scenario.incarnations.size() == 1 &&
                     scenario.incarnations.front().actions.empty() &&
                     !scenario.incarnations.front().foreign;
  if (!first) scenario.incarnations.push_back(like_the_last(scenario));
  scenario.incarnations.back().foreign = std::move(foreign);
}

/// Reads `- train: 3`, `- restart: {layout: {tp: 4}}`.
void read_step(YamlMap step, const YAML::Node& node, Scenario& scenario) {
  const IncarnationPlan& plan = scenario.incarnations.back();
  auto& actions = scenario.incarnations.back().actions;
  if (step.has("train")) {
    actions.emplace_back(read_train(step));
  } else if (step.has("save")) {
    actions.emplace_back(read_save(step.map("save")));
  } else if (step.has("bad_result")) {
    actions.emplace_back(read_bad_result(step.map("bad_result"), plan));
  } else if (step.has("exits")) {
    actions.emplace_back(read_exit(step));
  } else if (step.has("fault")) {
    actions.emplace_back(read_fault(step.map("fault"), plan));
  } else if (step.has("damage")) {
    actions.emplace_back(read_damage(step.map("damage")));
  } else if (step.has("restart")) {
    scenario.incarnations.push_back(read_restart(step.map("restart"), scenario));
  } else if (step.has("incarnation")) {
    add_foreign(read_foreign(step.map("incarnation")), scenario);
  } else {
    for (const auto known : kKnown) static_cast<void>(step.node(known));
    step.refuse_unknown();
    step.fail(node, std::string("does nothing; ") + kSteps);
  }
  step.refuse_unknown();
}

/// True if the action changes stored checkpoints only after the life has ended.
bool is_afterwards(const Action& action) {
  return std::holds_alternative<DamageAction>(action) ||
         std::holds_alternative<ReleaseAction>(action);
}

/// Checks the order of the steps within one life.
void require_order(const YamlMap& top, const IncarnationPlan& plan, const YAML::Node& root) {
  bool exited = false;
  bool ended = false;
  for (const auto& action : plan.actions) {
    const bool afterwards = is_afterwards(action);
    if (ended && !afterwards) {
      top.fail(root,
               "does something between damage or a release and the restart after it; damage is "
               "last, and so is a release");
    }
    if (exited && !afterwards) top.fail(root, "does something after the job has exited");
    ended = ended || afterwards;
    exited = exited || std::holds_alternative<ExitAction>(action);
  }
  if (plan.foreign && !std::all_of(plan.actions.begin(), plan.actions.end(), is_afterwards)) {
    top.fail(root, "lets the job do something in the life of a command; restart it first");
  }
  if (!plan.fails) return;
  const bool idle = std::all_of(plan.actions.begin(), plan.actions.end(), [](const Action& action) {
    return is_afterwards(action) || std::holds_alternative<FaultAction>(action);
  });
  if (!idle) top.fail(root, "does something in a life whose load is to fail");
}

/// True if `action` is training that saves at least once, when it starts at `iteration`. Adds the
/// steps of the training to `iteration`.
bool saves_on_the_way(const Action& action, std::int64_t& iteration) {
  const auto* train = std::get_if<TrainAction>(&action);
  if (train == nullptr) return false;
  const std::int64_t from = iteration;
  iteration += train->steps;
  return train->save_interval > 0 && iteration / train->save_interval > from / train->save_interval;
}

}  // namespace

void read_steps(YamlMap& top, Scenario& scenario) {
  int number = 0;
  for (const auto& step : top.items("steps")) {
    ++number;
    if (step.IsScalar()) {
      read_word(top, step, number, scenario);
    } else {
      read_step({step, top.file(), "step " + std::to_string(number), top.bindings()}, step,
                scenario);
    }
  }
}

void require_sense(const YamlMap& top, const Scenario& scenario, const YAML::Node& root) {
  bool loads = scenario.incarnations.size() > 1;
  bool saved = false;
  for (const auto& plan : scenario.incarnations) {
    // Judges read the checkpoint of another program like a load does.
    loads = loads || plan.foreign;
    saved = saved || plan.foreign;
  }
  std::int64_t trained = 0;
  for (const auto& action : scenario.incarnations.front().actions) {
    saved = saved || std::holds_alternative<SaveAction>(action) ||
            std::holds_alternative<ExitAction>(action) || saves_on_the_way(action, trained);
    if (!std::holds_alternative<LoadAction>(action)) continue;
    loads = true;
    if (!saved) top.fail(root, "loads before anything was saved");
  }
  if (!loads) top.fail(root, "never restarts and never loads, so nothing would be compared");
  if (!saved) top.fail(root, "restarts before anything was saved");
  for (const auto& plan : scenario.incarnations) {
    require_order(top, plan, root);
  }
  const auto& last = scenario.incarnations.back().actions;
  if (std::any_of(last.begin(), last.end(), is_afterwards)) {
    top.fail(root, "damages a checkpoint, or makes it a release, and nothing loads it afterwards");
  }
}

}  // namespace reprise::driver
