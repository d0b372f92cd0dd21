#include "driver/trainers/program_steps.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <sstream>

#include "core/base/print.hpp"
#include "driver/trainers/command_step.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

constexpr std::int64_t kTrainMax = 10000;
constexpr std::int64_t kProgramCountMax = 1'000'000;
constexpr const char* kProgramSteps =
    "the steps of a trainer are: train: N, save, load, finalize, kill, fault: {rerun}, exit: CODE, "
    "restart, incarnation: {command}";

std::vector<std::string_view> views_of(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

/// Reads "dp2 tp2".
std::map<std::string, std::int64_t> layout_in_text(YamlMap& map, const std::string& text) {
  std::map<std::string, std::int64_t> layout;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const auto digits = word.find_last_not_of("0123456789") + 1;
    const bool good = digits > 0 && digits < word.size() && word.size() - digits < 4;
    const std::string axis = word.substr(0, digits);
    if (!good || layout.contains(axis)) {
      map.fail(map.node("layout"), "has '" + word + "' in its layout; write it like this: dp2 tp2");
    }
    layout[axis] = std::stoll(word.substr(digits));
  }
  return layout;
}

std::map<std::string, std::int64_t> read_program_layout(YamlMap& map, const TrainerFile& trainer) {
  std::map<std::string, std::int64_t> layout;
  const auto axes = views_of(trainer.axes);
  YAML::Node node = map.node("layout");
  if (node.IsScalar()) {
    layout = layout_in_text(map, map.required("layout"));
  } else {
    YamlMap sizes = map.map("layout");
    for (const auto& axis : trainer.axes) {
      if (const auto size = sizes.integer_in(axis, 1, trainer.ranks)) layout[axis] = *size;
    }
    sizes.refuse_unknown();
  }
  for (const auto& [axis, size] : layout) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) {
      map.fail(map.node("layout"),
               "has the axis '" + axis + "', which " + trainer.name +
                   " does not support; it supports: " + join(trainer.axes, ", "));
    }
    if (size < 1) map.fail(map.node("layout"), "has the size 0 for the axis '" + axis + "'");
  }
  for (const auto& axis : trainer.axes) layout.emplace(axis, 1);
  if (trainer.world_of(layout) > trainer.ranks) {
    map.fail(map.node("layout"), "needs " + std::to_string(trainer.world_of(layout)) +
                                     " processes; " + trainer.name + " takes at most " +
                                     std::to_string(trainer.ranks));
  }
  return layout;
}

/// Reads the key `options` of the map into the argument `options`. Options that are not listed
/// under the key keep their values.
void read_program_options(YamlMap& map, const TrainerFile& trainer,
                          std::map<std::string, std::string>& options) {
  if (!map.has("options")) {
    map.know("options");
    return;
  }
  YamlMap given = map.map("options");
  for (const auto& option : trainer.options) {
    const auto values = views_of(option.values);
    if (const auto value = given.word(option.name, values)) options[option.name] = *value;
  }
  given.refuse_unknown();
}

void require_action(YamlMap& map, const TrainerFile& trainer, std::string_view action,
                    const YAML::Node& at) {
  const auto& known = trainer.actions;
  if (std::find(known.begin(), known.end(), action) != known.end()) return;
  map.fail(at, "needs '" + std::string(action) + "' of " + trainer.name +
                   ", which can: " + join(known, ", "));
}

std::int64_t count_of(const ProgramLife& life, ProgramDoes does) {
  return std::count_if(life.steps.begin(), life.steps.end(),
                       [does](const ProgramStep& step) { return step.does == does; });
}

/// Reads a kill that happens during a save or load, and adds that save or load to the life. Adds
/// nothing for the load at the start of a life.
ProgramKill read_kill(YamlMap map, const ProgramPlan& plan, ProgramLife& life) {
  const TrainerFile& trainer = plan.trainer;
  ProgramKill kill;
  map.attempt(
      [&] { kill.phase = map.needed("phase", map.word("phase", views_of(trainer.phases))); });
  map.attempt([&] {
    kill.rank = map.needed("rank", map.integer_in("rank", 0, trainer.ranks - 1));
    const std::int64_t last = trainer.world_of(life.layout) - 1;
    if (kill.rank > last) {
      map.fail(map.node("rank"), "needs a rank from 0 to " + std::to_string(last) + ", not " +
                                     std::to_string(kill.rank));
    }
  });
  const bool loads = kill.phase.starts_with("load");
  const bool first_load = loads && plan.lives.size() > 1;
  const ProgramDoes does = loads ? ProgramDoes::kLoad : ProgramDoes::kSave;
  kill.occurrence = count_of(life, does) + (first_load && !life.steps.empty() ? 2 : 1);
  if (!loads || !life.steps.empty()) life.steps.push_back({.does = does});
  if (const auto given = map.integer_in("occurrence", 1, kProgramCountMax))
    kill.occurrence = *given;
  map.refuse_unknown();
  return kill;
}

ProgramRerun read_rerun(YamlMap map) {
  ProgramRerun rerun;
  rerun.iteration = map.integer_in("iteration", 1, kProgramCountMax).value_or(1);
  map.attempt([&] {
    rerun.kind =
        map.needed("kind", map.one_of("kind", {ProgramFault::kTransient, ProgramFault::kPersistent,
                                               ProgramFault::kCorrect, ProgramFault::kRejected}));
  });
  rerun.rank = map.integer_in("rank", 0, kProgramCountMax);
  map.refuse_unknown();
  return rerun;
}

ProgramLife next_life(const ProgramPlan& plan) {
  return {.layout = plan.lives.back().layout, .options = plan.lives.back().options};
}

/// Reads steps that are a single word: save, load, finalize, restart.
void read_program_word(YamlMap& top, const YAML::Node& node, ProgramPlan& plan) {
  const std::string& word = node.Scalar();
  if (word == "restart") {
    plan.lives.push_back(next_life(plan));
    return;
  }
  for (const auto does : {ProgramDoes::kSave, ProgramDoes::kLoad, ProgramDoes::kFinalize}) {
    if (word != name_of(does)) continue;
    require_action(top, plan.trainer, word, node);
    plan.lives.back().steps.push_back({.does = does});
    return;
  }
  constexpr std::array<std::string_view, 4> kWords = {"save", "load", "finalize", "restart"};
  const std::string near = closest(word, kWords);
  top.refuse(node, "has a step '" + word + "'; " +
                       (near.empty() ? kProgramSteps : "did you mean '" + near + "'?"));
}

void read_program_restart(YamlMap map, ProgramPlan& plan) {
  ProgramLife life = next_life(plan);
  map.attempt([&] {
    if (map.has("layout")) life.layout = read_program_layout(map, plan.trainer);
  });
  map.know("layout");
  map.attempt([&] { read_program_options(map, plan.trainer, life.options); });
  map.refuse_unknown();
  plan.lives.push_back(std::move(life));
}

void read_program_fault(YamlMap map, const TrainerFile& trainer, ProgramLife& life) {
  if (!map.has("rerun")) map.required("rerun");
  if (std::find(trainer.faults.begin(), trainer.faults.end(), "rerun") == trainer.faults.end()) {
    map.fail(map.node("rerun"), "is a fault that " + trainer.name +
                                    " can't have: its trainer.yaml has no 'faults: [rerun]'");
  }
  life.rerun = read_rerun(map.map("rerun"));
  map.refuse_unknown();
}

/// Reads steps that are maps, such as `- train: 3` or `- restart: {layout: dp4}`.
void read_program_step(YamlMap step, const YAML::Node& node, ProgramPlan& plan) {
  const TrainerFile& trainer = plan.trainer;
  ProgramLife& life = plan.lives.back();
  if (step.has("train")) {
    require_action(step, trainer, "train", node);
    const auto steps = step.needed("train", step.integer_in("train", 1, kTrainMax));
    life.steps.push_back({ProgramDoes::kTrain, steps});
  } else if (step.has("save")) {
    require_action(step, trainer, "save", node);
    YamlMap save = step.map("save");
    life.steps.push_back({ProgramDoes::kSave, 0, save.flag("async")});
    save.refuse_unknown();
  } else if (step.has("kill")) {
    life.kill = read_kill(step.map("kill"), plan, life);
  } else if (step.has("fault")) {
    read_program_fault(step.map("fault"), trainer, life);
  } else if (step.has("exit")) {
    const auto code = step.needed("exit", step.integer_in("exit", 0, UINT8_MAX));
    if (std::find(trainer.exits.begin(), trainer.exits.end(), code) == trainer.exits.end()) {
      step.fail(node, "plans the exit code " + std::to_string(code) + "; " + trainer.name +
                          " plans: " + join(trainer.exits, ", "));
    }
    life.exit = code;
  } else if (step.has("restart")) {
    read_program_restart(step.map("restart"), plan);
  } else if (step.has("incarnation")) {
    plan.lives.push_back(next_life(plan));
    plan.lives.back().command = read_command_life(step.map("incarnation"));
  } else {
    for (const char* known : {"train", "save", "kill", "fault", "exit", "restart", "incarnation"}) {
      step.know(known);
    }
    step.refuse_unknown();
    if (!step.keys().empty()) throw Unread();  // they are all unknown
    step.fail(node, std::string("does nothing; ") + kProgramSteps);
  }
  step.refuse_unknown();
}

void read_program_expect(YamlMap map, ProgramPlan& plan) {
  map.attempt([&] {
    if (const auto delta = map.number("max_delta"); delta && *delta != 0) {
      map.fail(map.node("max_delta"), "needs max_delta 0: anything else is a difference");
    }
  });
  ProgramExpectation& expect = plan.expect;
  expect.loaded_step = map.integer_in("loaded_step", 0, INT64_MAX);
  expect.goes_on = map.one_of("goes_on", {GoesOn::kBitwise, GoesOn::kLikeControl})
                       .value_or(plan.trainer.goes_on);
  map.attempt([&] {
    expect.loss_within = map.number("loss_within").value_or(kLossWithin);
    if (expect.loss_within >= 0 && expect.loss_within < 1) return;
    map.fail(map.node("loss_within"), "needs a relative distance of at least 0 and below 1");
  });
  map.attempt([&] {
    if (const auto name = map.text("fails")) {
      expect.fails = ruling_code_named(*name);
      if (!expect.fails) map.refuse(map.node("fails"), "has the unknown code " + *name);
    }
    expect.says = map.text("says").value_or("");
    if (!expect.says.empty() && !expect.fails) {
      map.fail(map.node("says"), "has 'says' for a failure but does not expect one");
    }
  });
  map.know("says");
  map.attempt([&] {
    expect.unwitnessed = map.texts("unwitnessed");
    const auto& excused = expect.unwitnessed;
    if (std::find(excused.begin(), excused.end(), "") == excused.end()) return;
    map.fail(map.node("unwitnessed"), "excuses all keys with an empty prefix");
  });
  map.refuse_unknown();
}

TrainerFile named_trainer(YamlMap& map, const std::string& trainers) {
  const std::string name = map.required("name");
  try {
    return read_trainer(name, map.file(), trainers);
  } catch (const Error& error) {
    if (!error.place().file.empty()) throw;
    map.refuse(map.node("name"), "has an unknown name: " + error.message());
  }
}

/// Reads the versions that this scenario needs beyond those of its trainer.
void read_needs_of_scenario(YamlMap& map, ProgramPlan& plan) {
  if (!map.has("needs")) return;
  YamlMap needs = map.map("needs");
  for (const auto& package : needs.keys()) {
    const std::string version = needs.required(package);
    plan.needs[package] = version;
    std::string& all = plan.trainer.needs[package];
    all = all.empty() ? version : version + "," + all;
  }
}

/// Reads the trainer, and the first life except for its steps.
ProgramPlan read_trainer_of(YamlMap& top, const std::string& trainers) {
  YamlMap map = top.map("trainer");
  ProgramPlan plan;
  plan.seed = map.integer_in("seed", 0, INT64_MAX).value_or(1);
  ProgramLife& first = plan.lives.emplace_back();
  const bool known = map.attempt([&] { plan.trainer = named_trainer(map, trainers); });
  for (const char* key : {"layout", "options", "needs"}) map.know(key);
  if (known) {
    map.attempt([&] { read_needs_of_scenario(map, plan); });
    map.attempt([&] {
      static_cast<void>(map.required_node("layout"));
      first.layout = read_program_layout(map, plan.trainer);
    });
    map.attempt([&] { read_program_options(map, plan.trainer, first.options); });
  }
  map.refuse_unknown();
  if (!known) throw Unread();
  return plan;
}

/// Checks that the first life saves something, that the last life runs the trainer and not a
/// command, and that no life has both a kill and an exit code.
void require_program_sense(YamlMap& top, const ProgramPlan& plan) {
  const bool saves =
      count_of(plan.lives.front(), ProgramDoes::kSave) > 0 || plan.lives.front().exit != 0;
  const YAML::Node at = top.node("steps");
  if (!saves) top.fail(at, "saves nothing in its first life, so nothing would be compared");
  if (plan.lives.back().command) {
    top.fail(at, "ends with a command, but nothing loads what it leaves; restart the trainer");
  }
  for (const auto& life : plan.lives) {
    if (life.kill && life.exit != 0) {
      top.fail(at, "plans both a kill and an exit code for one life");
    }
  }
}

}  // namespace

std::string_view name_of(ProgramDoes does) {
  constexpr std::string_view kNames[] = {"train", "save", "load", "finalize"};
  return kNames[static_cast<std::size_t>(does)];
}

std::string_view name_of(ProgramFault fault) {
  constexpr std::string_view kNames[] = {"transient", "persistent", "correct", "rejected"};
  return kNames[static_cast<std::size_t>(fault)];
}

std::string layout_text(const TrainerFile& trainer,
                        const std::map<std::string, std::int64_t>& layout) {
  std::string text;
  for (const auto& axis : trainer.axes) {
    const auto size = layout.find(axis);
    if (size == layout.end() || size->second == 1) continue;
    text += (text.empty() ? "" : " ") + axis + std::to_string(size->second);
  }
  return text.empty() ? "one rank" : text;
}

std::int64_t world_of_program(YamlMap& top, const std::string& trainers) {
  const ProgramPlan plan = read_trainer_of(top, trainers);
  return plan.trainer.world_of(plan.lives.front().layout);
}

ProgramPlan read_program(YamlMap& top, const std::string& trainers) {
  ProgramPlan plan;
  bool sound = top.attempt([&] { plan = read_trainer_of(top, trainers); });
  if (plan.lives.empty()) throw Unread();  // what the rest may say depends on the trainer
  std::size_t ended = 0;                   // number of lives that a kill or an exit has ended
  int number = 0;
  std::vector<YAML::Node> steps;
  sound = top.attempt([&] { steps = top.items("steps"); }) && sound;
  for (const auto& step : steps) {
    ++number;
    const auto read = [&] {
      const std::size_t lives = plan.lives.size();
      if (step.IsScalar()) {
        read_program_word(top, step, plan);
      } else {
        read_program_step({step, top.file(), "step " + std::to_string(number), top.bindings()},
                          step, plan);
      }
      if (ended == lives && plan.lives.size() == lives) {
        top.fail(step, "does something after the life has ended by a kill, an exit or a command");
      }
      const bool ends = !step.IsScalar() && (step["kill"] || step["exit"] || step["incarnation"]);
      if (ends) ended = plan.lives.size();
    };
    sound = top.attempt(read, sound) && sound;
  }
  sound = top.attempt([&] { read_program_expect(top.map("expect"), plan); }) && sound;
  if (sound) require_program_sense(top, plan);
  return plan;
}

}  // namespace reprise::driver
