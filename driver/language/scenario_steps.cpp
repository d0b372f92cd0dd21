#include "driver/language/scenario_steps.hpp"

#include <algorithm>
#include <array>

#include "core/base/codes.hpp"
#include "core/base/print.hpp"
#include "driver/language/scenario_faults.hpp"
#include "driver/language/scenario_job.hpp"
#include "driver/trainers/command_step.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

constexpr std::int64_t kStepsMax = 10000;

constexpr std::array<std::string_view, 11> kKnown = {"train", "save",    "load",       "bad_result",
                                                     "exits", "fault",   "damage",     "reshard",
                                                     "diff",  "restart", "incarnation"};
constexpr std::array<std::string_view, 7> kWords = {"save",    "finalize",     "reallocate", "load",
                                                    "release", "own_metadata", "restart"};
constexpr std::array<std::string_view, 2> kChecksums = {"written", "none"};
constexpr const char* kSteps =
    "steps are: train: N, save, finalize, reallocate, load, bad_result, exits: CODE, fault, "
    "damage, release, own_metadata, reshard, diff, restart, incarnation";

Failing read_fails(YamlMap& map) {
  const auto text = map.text("fails");
  if (!text) return {};
  for (const auto how : {Failing::How::kAny, Failing::How::kMaybe}) {
    if (*text == to_string(Failing{how})) return {how};
  }
  const auto code = code_named(*text);
  if (code && is_error(*code)) return {Failing::How::kBy, *code};
  map.refuse(map.node("fails"),
             "has the unknown code " + *text + "; give a code, 'any' or 'maybe'");
}

TrainAction read_train(YamlMap& step) {
  if (step.node("train").IsScalar()) {
    return {step.needed("train", step.integer_in("train", 0, kStepsMax))};
  }
  YamlMap map = step.map("train");
  TrainAction train;
  map.attempt([&] { train.steps = map.needed("steps", map.integer_in("steps", 0, kStepsMax)); });
  train.save_interval = map.integer_in("save_interval", 1, kStepsMax).value_or(0);
  map.refuse_unknown();
  return train;
}

SaveAction read_save(YamlMap map, const IncarnationPlan& plan) {
  SaveAction save;
  save.optimizer = !map.flag("no_optim").value_or(false);
  save.random = !map.flag("no_rng").value_or(false);
  save.kind =
      map.one_of("kind", {CheckpointKind::kTraining, CheckpointKind::kWeights}).value_or(save.kind);
  map.attempt([&] { save.fails = read_fails(map); });
  save.async = map.flag("async");
  save.checksums = map.word("checksums", kChecksums) != "none";
  map.attempt([&] {
    if (!map.has("lie")) return;
    save.lie = read_lie(map.map("lie"));
    require_member(map, "lie", save.lie->rank, plan);
  });
  map.refuse_unknown();
  return save;
}

ExitAction read_exit(YamlMap& step) {
  const auto code_in = [](YamlMap& map, const char* key) {
    return static_cast<int>(map.needed(key, map.integer_in(key, 0, UINT8_MAX)));
  };
  if (step.node("exits").IsScalar()) return {code_in(step, "exits"), {}};
  YamlMap map = step.map("exits");
  ExitAction exits{0, map.flag("saves")};
  map.attempt([&] { exits.code = code_in(map, "code"); });
  map.refuse_unknown();
  return exits;
}

ReshardAction read_reshard(YamlMap map) {
  constexpr std::int64_t kPartsMax = 4096;
  ReshardAction reshard;
  reshard.ranks = map.integer_in("ranks", 1, kPartsMax).value_or(reshard.ranks);
  reshard.writers = map.integer_in("writers", 1, kPartsMax).value_or(reshard.writers);
  reshard.fails = map.code("fails");
  map.refuse_unknown();
  return reshard;
}

DiffAction read_diff(YamlMap map) {
  DiffAction diff;
  diff.step = map.integer_in("step", 0, INT64_MAX);
  diff.with = map.integer_in("with", 0, INT64_MAX);
  diff.ignore = map.texts("ignore");
  map.attempt([&] {
    diff.says = map.needed(
        "says", map.one_of("says", {DiffOutcome::kSame, DiffOutcome::kDifferent,
                                    DiffOutcome::kNotAllCompared, DiffOutcome::kNothingCompared,
                                    DiffOutcome::kDamaged}));
  });
  map.refuse_unknown();
  return diff;
}

/// Reads steps that are a single word, those of kWords.
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
  } else if (word == "own_metadata") {
    actions.emplace_back(OwnMetadataAction{});
  } else if (word == "restart") {
    scenario.incarnations.push_back(like_the_last(scenario));
  } else {
    const std::string near = closest(word, kWords);
    top.refuse(node, "has a step " + std::to_string(number) + " '" + word + "'; " +
                         (near.empty() ? kSteps : "did you mean '" + near + "'?"));
  }
}

/// Reads `- incarnation: {command: [...]}`. It becomes the first life if no other life precedes it.
void add_command(CommandLife command, Scenario& scenario) {
  const bool first = scenario.incarnations.size() == 1 &&
                     scenario.incarnations.front().actions.empty() &&
                     !scenario.incarnations.front().command;
  if (!first) scenario.incarnations.push_back(like_the_last(scenario));
  scenario.incarnations.back().command = std::move(command);
}

/// Reads steps that are maps, such as `- train: 3` or `- restart: {layout: {tp: 4}}`.
void read_step(YamlMap step, const YAML::Node& node, Scenario& scenario) {
  const IncarnationPlan& plan = scenario.incarnations.back();
  auto& actions = scenario.incarnations.back().actions;
  if (step.has("train")) {
    actions.emplace_back(read_train(step));
  } else if (step.has("save")) {
    actions.emplace_back(read_save(step.map("save"), plan));
  } else if (step.has("bad_result")) {
    actions.emplace_back(read_bad_result(step.map("bad_result"), plan));
  } else if (step.has("exits")) {
    actions.emplace_back(read_exit(step));
  } else if (step.has("fault")) {
    actions.emplace_back(read_fault(step.map("fault"), plan));
  } else if (step.has("damage")) {
    actions.emplace_back(read_damage(step.map("damage")));
  } else if (step.has("reshard")) {
    actions.emplace_back(read_reshard(step.map("reshard")));
  } else if (step.has("diff")) {
    actions.emplace_back(read_diff(step.map("diff")));
  } else if (step.has("restart")) {
    scenario.incarnations.push_back(read_restart(step.map("restart"), scenario));
  } else if (step.has("incarnation")) {
    add_command(read_command_life(step.map("incarnation")), scenario);
  } else {
    for (const auto known : kKnown) step.know(known);
    step.refuse_unknown();
    if (!step.keys().empty()) throw Unread();  // they are all unknown
    step.fail(node, std::string("does nothing; ") + kSteps);
  }
  step.refuse_unknown();
}

/// True if the action changes stored checkpoints after the life has ended.
bool changes_stored(const Action& action) {
  return std::holds_alternative<DamageAction>(action) ||
         std::holds_alternative<ReleaseAction>(action) ||
         std::holds_alternative<OwnMetadataAction>(action) ||
         std::holds_alternative<ReshardAction>(action);
}

/// True if the action is done after the life has ended.
bool is_afterwards(const Action& action) {
  return changes_stored(action) || std::holds_alternative<DiffAction>(action);
}

/// Checks the order of the steps within one life.
void require_order(const YamlMap& top, const IncarnationPlan& plan, const YAML::Node& root) {
  bool exited = false;
  bool ended = false;
  for (const auto& action : plan.actions) {
    const bool afterwards = is_afterwards(action);
    if (ended && !afterwards) {
      top.fail(root,
               "does something between damage, a release, own_metadata, a reshard or a diff and "
               "the restart after it; these must be the last steps before the restart");
    }
    if (exited && !afterwards) top.fail(root, "does something after the job has exited");
    ended = ended || afterwards;
    exited = exited || std::holds_alternative<ExitAction>(action);
  }
  if (plan.command && !std::all_of(plan.actions.begin(), plan.actions.end(), is_afterwards)) {
    top.fail(root, "lets the job do something during the life of a command; restart it first");
  }
  if (!plan.fails) return;
  const bool idle = std::all_of(plan.actions.begin(), plan.actions.end(), [](const Action& action) {
    return is_afterwards(action) || std::holds_alternative<FaultAction>(action);
  });
  if (!idle) top.fail(root, "does something in a life whose load must fail");
}

/// True if `action` is training that begins at `iteration` and includes at least one save. Advances
/// `iteration` by the number of training steps.
bool saves_on_the_way(const Action& action, std::int64_t& iteration) {
  const auto* train = std::get_if<TrainAction>(&action);
  if (train == nullptr) return false;
  const std::int64_t from = iteration;
  iteration += train->steps;
  return train->save_interval > 0 && iteration / train->save_interval > from / train->save_interval;
}

/// True if the step may be meant to begin another life, whatever mistakes are in it. The steps
/// after it can then be judged only with it.
bool may_begin_life(const YAML::Node& step) {
  constexpr std::array kWithinLife = {"train", "save",   "bad_result", "exits",
                                      "fault", "damage", "reshard",    "diff"};
  return !step.IsMap() || std::none_of(kWithinLife.begin(), kWithinLife.end(),
                                       [&step](const char* key) { return step[key].IsDefined(); });
}

}  // namespace

void read_steps(YamlMap& top, Scenario& scenario) {
  int number = 0;
  bool sound = true;
  for (const auto& step : top.items("steps")) {
    ++number;
    const auto read = [&] {
      if (step.IsScalar()) {
        read_word(top, step, number, scenario);
      } else {
        read_step({step, top.file(), "step " + std::to_string(number), top.bindings()}, step,
                  scenario);
      }
    };
    const bool right = top.attempt(read, sound);
    sound = sound && (right || !may_begin_life(step));
  }
}

void require_sense(const YamlMap& top, const Scenario& scenario, const YAML::Node& root) {
  bool loads = scenario.incarnations.size() > 1;
  bool saved = false;
  for (const auto& plan : scenario.incarnations) {
    loads = loads || plan.command;  // the checkpoint of a command is read, too
    saved = saved || plan.command;
  }
  std::int64_t trained = 0;
  for (const auto& action : scenario.incarnations.front().actions) {
    saved = saved || std::holds_alternative<SaveAction>(action) ||
            std::holds_alternative<ExitAction>(action) || saves_on_the_way(action, trained);
    if (!std::holds_alternative<LoadAction>(action)) continue;
    loads = true;
    if (!saved) top.fail(root, "loads before anything has been saved");
  }
  if (!loads) top.fail(root, "never restarts and never loads, so nothing would be compared");
  if (!saved) top.fail(root, "restarts before anything has been saved");
  for (const auto& plan : scenario.incarnations) {
    require_order(top, plan, root);
  }
  const auto& last = scenario.incarnations.back().actions;
  if (std::any_of(last.begin(), last.end(), changes_stored)) {
    top.fail(root, "does something to a checkpoint, but nothing loads it afterwards");
  }
}

}  // namespace reprise::driver
