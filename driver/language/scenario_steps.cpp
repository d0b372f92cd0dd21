#include "driver/language/scenario_steps.hpp"

#include <algorithm>
#include <tuple>

#include "core/base/codes.hpp"
#include "core/base/print.hpp"
#include "driver/language/scenario_faults.hpp"
#include "driver/language/scenario_job.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

constexpr std::int64_t kStepsMax = 10000;
constexpr std::int64_t kPartsMax = 4096;

constexpr const char* kSteps =
    "steps are: train: N, save, finalize, reallocate, load, bad_result, exits: CODE, fault, "
    "damage, release, own_metadata, reshard, diff, restart, incarnation";

std::optional<Failing> read_failing(YamlMap& map, std::string_view key) {
  const auto text = map.text(key);
  if (!text) return std::nullopt;
  for (const auto how : {Failing::How::kAny, Failing::How::kMaybe}) {
    if (*text == name_of(Failing{how})) return Failing{how};
  }
  const auto code = code_named(*text);
  if (code && is_error(*code)) return Failing{Failing::How::kBy, *code};
  map.refuse(map.node(key), "has the unknown code " + *text + "; give a code, 'any' or 'maybe'");
}

/// Forms in which a step without unusual keys is written.
enum class Brief : std::uint8_t {
  kNone,
  kWord,   ///< `- save`
  kFirst,  ///< `- train: 3`, the value of the first key
};

/// One kind of step: `- key: {...}`.
template <class Act>
struct Step {
  std::string_view key;
  Brief brief = Brief::kNone;
  Rows<Act> rows = {};
};

Rows<TrainAction> train_rows() {
  return {row("steps", &TrainAction::steps, Whole{0, kStepsMax}, Written::kNeeded),
          row("save_interval", &TrainAction::save_interval, Whole{1, kStepsMax})};
}

Rows<SaveAction> save_rows() {
  using Save = SaveAction;
  return {row("no_optim", &Save::optimizer, NotFlag{}),
          row("no_rng", &Save::random, NotFlag{}),
          row("kind", &Save::kind, by_name({CheckpointKind::kTraining, CheckpointKind::kWeights})),
          row("fails", &Save::fails, read_failing),
          row("async", &Save::async, &YamlMap::flag),
          row("checksums", &Save::checksums, Choice<bool>{{{true, "written"}, {false, "none"}}}),
          row("lie", &Save::lie, Mapping<Lie>{lie_rows()})};
}

Rows<ExitAction> exit_rows() {
  return {row("code", &ExitAction::code, Whole{0, UINT8_MAX}, Written::kNeeded),
          row("saves", &ExitAction::saves, &YamlMap::flag)};
}

Rows<ReshardAction> reshard_rows() {
  return {row("ranks", &ReshardAction::ranks, Whole{1, kPartsMax}),
          row("writers", &ReshardAction::writers, Whole{1, kPartsMax}),
          row("fails", &ReshardAction::fails, &YamlMap::code)};
}

Rows<DiffAction> diff_rows() {
  return {row("step", &DiffAction::step, Whole{0, INT64_MAX}),
          row("with", &DiffAction::with, Whole{0, INT64_MAX}),
          row("ignore", &DiffAction::ignore, &YamlMap::texts),
          row("says", &DiffAction::says,
              by_name({DiffOutcome::kSame, DiffOutcome::kDifferent, DiffOutcome::kNotAllCompared,
                       DiffOutcome::kNothingCompared, DiffOutcome::kDamaged}),
              Written::kNeeded)};
}

/// All kinds of steps within a life.
const auto& kinds_of_steps() {
  static const std::tuple kinds = {
      Step<TrainAction>{"train", Brief::kFirst, train_rows()},
      Step<SaveAction>{"save", Brief::kWord, save_rows()},
      Step<BadResultAction>{"bad_result", Brief::kNone, bad_result_rows()},
      Step<ExitAction>{"exits", Brief::kFirst, exit_rows()},
      Step<FaultAction>{"fault", Brief::kNone, fault_rows()},
      Step<DamageAction>{"damage", Brief::kNone, damage_rows()},
      Step<ReshardAction>{"reshard", Brief::kNone, reshard_rows()},
      Step<DiffAction>{"diff", Brief::kNone, diff_rows()},
      Step<FinalizeAction>{"finalize", Brief::kWord},
      Step<ReallocateAction>{"reallocate", Brief::kWord},
      Step<LoadAction>{"load", Brief::kWord},
      Step<ReleaseAction>{"release", Brief::kWord},
      Step<OwnMetadataAction>{"own_metadata", Brief::kWord}};
  return kinds;
}

/// Returns the keys of the steps that may be words, or of those that may be mappings.
std::vector<std::string_view> step_keys(bool words) {
  std::vector<std::string_view> keys;
  const auto add = [&](const auto& kind) {
    if (words ? kind.brief == Brief::kWord : !kind.rows.empty()) keys.push_back(kind.key);
  };
  std::apply([&](const auto&... kinds) { (add(kinds), ...); }, kinds_of_steps());
  return keys;
}

void check(YamlMap& map, const SaveAction& save, const LifePlan& plan) {
  if (save.lie) require_member(map, "lie", save.lie->rank, plan);
}

/// Reads steps that are a single word.
void read_word(const YamlMap& top, const YAML::Node& node, int number, Scenario& scenario) {
  auto& actions = scenario.lives.back().actions;
  const std::string& word = node.Scalar();
  if (word == "restart") {
    scenario.lives.push_back(like_the_last(scenario));
    return;
  }
  const auto is_step = [&]<class Act>(const Step<Act>& kind) {
    if (kind.brief != Brief::kWord || kind.key != word) return false;
    actions.emplace_back(Act{});
    return true;
  };
  if (std::apply([&](const auto&... kinds) { return (is_step(kinds) || ...); }, kinds_of_steps())) {
    return;
  }
  auto words = step_keys(true);
  words.emplace_back("restart");
  const std::string near = closest(word, words);
  top.refuse(node, "has a step " + std::to_string(number) + " '" + word + "'; " +
                       (near.empty() ? kSteps : "did you mean '" + near + "'?"));
}

/// Reads the step if it is of this kind.
template <class Act>
bool read_as(const Step<Act>& kind, YamlMap& step, LifePlan& plan) {
  if (kind.rows.empty() || !step.has(kind.key)) return false;
  Act act;
  if (kind.brief == Brief::kFirst && step.node(kind.key).IsScalar()) {
    kind.rows.front().read(step, kind.key, act);
  } else {
    YamlMap map = step.map(kind.key);
    read_rows(map, kind.rows, act);
    map.refuse_unknown();
    if constexpr (requires { check(map, act, plan); }) check(map, act, plan);
  }
  plan.actions.emplace_back(std::move(act));
  return true;
}

/// Reads `- incarnation: {command: [...]}`. It becomes the first life if no other life precedes it.
void add_command(CommandLife command, Scenario& scenario) {
  const bool first = scenario.lives.size() == 1 && scenario.lives.front().actions.empty() &&
                     !scenario.lives.front().command;
  if (!first) scenario.lives.push_back(like_the_last(scenario));
  scenario.lives.back().command = std::move(command);
}

/// Reads steps that are maps, such as `- train: 3` or `- restart: {layout: {tp: 4}}`.
void read_step(YamlMap step, const YAML::Node& node, Scenario& scenario) {
  LifePlan& plan = scenario.lives.back();
  const bool within_life = std::apply(
      [&](const auto&... kinds) { return (read_as(kinds, step, plan) || ...); }, kinds_of_steps());
  if (within_life) return step.refuse_unknown();
  if (step.has("restart")) {
    scenario.lives.push_back(read_restart(step.map("restart"), scenario));
  } else if (step.has("incarnation")) {
    add_command(read_command_life(step.map("incarnation")), scenario);
  } else {
    for (const auto known : step_keys(false)) step.know(known);
    for (const auto* known : {"restart", "incarnation"}) step.know(known);
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
void require_order(const YamlMap& top, const LifePlan& plan, const YAML::Node& root) {
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
  const auto within_life = step_keys(false);
  return !step.IsMap() || std::none_of(within_life.begin(), within_life.end(), [&](auto key) {
    return step[std::string(key)].IsDefined();
  });
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

void put_action(YAML::Emitter& out, const Action& action) {
  const auto put = [&out]<class Act>(const Act& act) {
    const auto& kind = std::get<Step<Act>>(kinds_of_steps());
    const auto is_usual = [&act](const Row<Act>& row) { return row.is_usual(act); };
    const auto further = kind.rows.begin() + (kind.brief == Brief::kFirst ? 1 : 0);
    const bool brief =
        kind.brief != Brief::kNone && std::all_of(further, kind.rows.end(), is_usual);
    if (brief && kind.brief == Brief::kWord) {
      out << std::string(kind.key);
      return;
    }
    out << YAML::BeginMap << YAML::Key << std::string(kind.key) << YAML::Value;
    if (brief) {
      kind.rows.front().write(out, act);
    } else {
      out << YAML::Flow;
      put_map(out, kind.rows, act);
    }
    out << YAML::EndMap;
  };
  std::visit(put, action);
}

void require_sense(const YamlMap& top, const Scenario& scenario, const YAML::Node& root) {
  bool loads = scenario.lives.size() > 1;
  bool saved = false;
  for (const auto& plan : scenario.lives) {
    loads = loads || plan.command;  // the checkpoint of a command is read, too
    saved = saved || plan.command;
  }
  std::int64_t trained = 0;
  for (const auto& action : scenario.lives.front().actions) {
    saved = saved || std::holds_alternative<SaveAction>(action) ||
            std::holds_alternative<ExitAction>(action) || saves_on_the_way(action, trained);
    if (!std::holds_alternative<LoadAction>(action)) continue;
    loads = true;
    if (!saved) top.fail(root, "loads before anything has been saved");
  }
  if (!loads) top.fail(root, "never restarts and never loads, so nothing would be compared");
  if (!saved) top.fail(root, "restarts before anything has been saved");
  for (const auto& plan : scenario.lives) {
    require_order(top, plan, root);
  }
  const auto& last = scenario.lives.back().actions;
  if (std::any_of(last.begin(), last.end(), changes_stored)) {
    top.fail(root, "does something to a checkpoint, but nothing loads it afterwards");
  }
}

}  // namespace reprise::driver
