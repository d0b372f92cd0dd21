#include "driver/trainers/program_steps.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <sstream>

#include "core/base/print.hpp"
#include "driver/yaml/rows.hpp"
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

void put_texts(YAML::Emitter& out, const std::map<std::string, std::string>& texts) {
  out << YAML::Flow << YAML::BeginMap;
  for (const auto& [key, text] : texts) out << YAML::Key << key << YAML::Value << text;
  out << YAML::EndMap;
}

/// What a life has of its own. Options that are not listed keep their values.
Rows<ProgramLife> grid_rows(const TrainerFile& trainer) {
  const auto read_layout = [&trainer](YamlMap& map, std::string_view key, ProgramLife& life) {
    if (map.has(key)) life.layout = read_program_layout(map, trainer);
  };
  const auto read_options = [&trainer](YamlMap& map, std::string_view key, ProgramLife& life) {
    if (!map.has(key)) return;
    YamlMap given = map.map(key);
    for (const auto& option : trainer.options) {
      const auto value = given.word(option.name, views_of(option.values));
      if (value) life.options[option.name] = *value;
    }
    given.refuse_unknown();
  };
  Rows<ProgramLife> rows = {
      fixed_row<ProgramLife>("layout", Written::kAlways, read_layout,
                             [](YAML::Emitter& out, const ProgramLife& life) {
                               out << YAML::Flow << YAML::BeginMap;
                               for (const auto& [axis, size] : life.layout) {
                                 if (size > 1) out << YAML::Key << axis << YAML::Value << size;
                               }
                               out << YAML::EndMap;
                             }),
      fixed_row<ProgramLife>(
          "options", Written::kIfUnusual, read_options,
          [](YAML::Emitter& out, const ProgramLife& life) { put_texts(out, life.options); })};
  rows.back().is_usual = [](const ProgramLife& life) { return life.options.empty(); };
  return rows;
}

Rows<ProgramKill> kill_rows(const TrainerFile& trainer) {
  return {
      row("rank", &ProgramKill::rank, Whole{0, trainer.ranks - 1}, Written::kNeeded),
      row("phase", &ProgramKill::phase, words(views_of(trainer.phases)), Written::kNeeded),
      row("occurrence", &ProgramKill::occurrence, Whole{1, kProgramCountMax}, Written::kAlways)};
}

const Rows<ProgramRerun>& rerun_rows() {
  static const Rows<ProgramRerun> rows = {
      row("iteration", &ProgramRerun::iteration, Whole{1, kProgramCountMax}, Written::kAlways),
      row("kind", &ProgramRerun::kind,
          by_name({ProgramFault::kTransient, ProgramFault::kPersistent, ProgramFault::kCorrect,
                   ProgramFault::kRejected}),
          Written::kNeeded),
      row("rank", &ProgramRerun::rank, Whole{0, kProgramCountMax}),
  };
  return rows;
}

const Rows<ProgramLife>& program_fault_rows() {
  static const Rows<ProgramLife> rows = {
      row("rerun", &ProgramLife::rerun, Mapping<ProgramRerun>{rerun_rows()}, Written::kNeeded)};
  return rows;
}

std::optional<double> read_loss_within(YamlMap& map, std::string_view key) {
  const auto within = map.number(key);
  if (within && !(*within >= 0 && *within < 1)) {
    map.fail(map.node(key), "needs a relative distance of at least 0 and below 1");
  }
  return within;
}

std::optional<FindingCode> read_finding_code(YamlMap& map, std::string_view key) {
  const auto name = map.text(key);
  if (!name) return std::nullopt;
  const auto code = finding_code_named(*name);
  if (!code) map.refuse(map.node(key), "has the unknown code " + *name);
  return code;
}

const Rows<ProgramExpectation>& program_expect_rows() {
  using Expect = ProgramExpectation;
  static const Rows<Expect> rows = {
      fixed_row<Expect>(
          "max_delta", Written::kAlways,
          [](YamlMap& map, std::string_view key, Expect&) {
            if (map.number(key).value_or(0) == 0) return;
            map.fail(map.node(key), "needs max_delta 0: anything else is a difference");
          },
          [](YAML::Emitter& out, const Expect&) { out << 0; }),
      row("goes_on", &Expect::goes_on, by_name({GoesOn::kBitwise, GoesOn::kLikeControl}),
          Written::kAlways),
      row("loaded_step", &Expect::loaded_step, Whole{0, INT64_MAX}),
      row("loss_within", &Expect::loss_within, read_loss_within),
      row("fails", &Expect::fails, read_finding_code),
      row("says", &Expect::says, &YamlMap::text),
      row("unwitnessed", &Expect::unwitnessed, &YamlMap::texts),
  };
  return rows;
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
  ProgramKill kill{.occurrence = 0};
  read_rows(map, kill_rows(trainer), kill);
  map.attempt([&] {
    const std::int64_t last = trainer.world_of(life.layout) - 1;
    if (kill.rank <= last) return;
    map.fail(map.node("rank"), "needs a rank from 0 to " + std::to_string(last) + ", not " +
                                   std::to_string(kill.rank));
  });
  const bool loads = kill.phase.starts_with("load");
  const bool first_load = loads && plan.lives.size() > 1;
  const ProgramDoes does = loads ? ProgramDoes::kLoad : ProgramDoes::kSave;
  if (kill.occurrence == 0) {
    kill.occurrence = count_of(life, does) + (first_load && !life.steps.empty() ? 2 : 1);
  }
  if (!loads || !life.steps.empty()) life.steps.push_back({.does = does});
  map.refuse_unknown();
  return kill;
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
  read_rows(map, grid_rows(plan.trainer), life);
  map.refuse_unknown();
  plan.lives.push_back(std::move(life));
}

void read_program_fault(YamlMap map, const TrainerFile& trainer, ProgramLife& life) {
  if (!map.has("rerun")) map.required("rerun");
  if (std::find(trainer.faults.begin(), trainer.faults.end(), "rerun") == trainer.faults.end()) {
    map.fail(map.node("rerun"), "is a fault that " + trainer.name +
                                    " can't have: its trainer.yaml has no 'faults: [rerun]'");
  }
  read_rows(map, program_fault_rows(), life);
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
  ProgramExpectation& expect = plan.expect;
  expect.goes_on = plan.trainer.goes_on;
  read_rows(map, program_expect_rows(), expect);
  map.attempt([&] {
    if (expect.says.empty() || map.has("fails")) return;
    map.fail(map.node("says"), "has 'says' for a failure but does not expect one");
  });
  map.attempt([&] {
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
    map.attempt([&] { static_cast<void>(map.required_node("layout")); });
    read_rows(map, grid_rows(plan.trainer), first);
  }
  map.refuse_unknown();
  if (!known) throw Unread();
  return plan;
}

/// Writes `- key: {...}`.
template <class T>
void put_step_of(YAML::Emitter& out, const char* key, const Rows<T>& rows, const T& value) {
  out << YAML::BeginMap << YAML::Key << key << YAML::Value << YAML::Flow;
  put_map(out, rows, value);
  out << YAML::EndMap;
}

void put_step(YAML::Emitter& out, const ProgramStep& step) {
  const std::string word(name_of(step.does));
  if (step.does == ProgramDoes::kTrain) {
    out << YAML::BeginMap << YAML::Key << word << YAML::Value << step.steps << YAML::EndMap;
  } else if (step.async) {
    out << YAML::BeginMap << YAML::Key << word << YAML::Value << YAML::Flow << YAML::BeginMap;
    out << YAML::Key << "async" << YAML::Value << *step.async << YAML::EndMap << YAML::EndMap;
  } else {
    out << word;
  }
}

/// Writes the steps of a life. A kill is written in place of the save or load in which it happens.
void put_life_steps(YAML::Emitter& out, const TrainerFile& trainer, const ProgramLife& life) {
  if (life.rerun) put_step_of(out, "fault", program_fault_rows(), life);
  const std::size_t kept = life.kill && !life.steps.empty() ? 1 : 0;
  for (std::size_t i = 0; i + kept < life.steps.size(); ++i) put_step(out, life.steps[i]);
  if (life.kill) put_step_of(out, "kill", kill_rows(trainer), *life.kill);
  if (life.exit != 0) {
    out << YAML::BeginMap << YAML::Key << "exit" << YAML::Value << life.exit << YAML::EndMap;
  }
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

void put_program(YAML::Emitter& out, const ProgramPlan& plan) {
  const Rows<ProgramLife> grids = grid_rows(plan.trainer);
  out << YAML::Key << "trainer" << YAML::Value << YAML::Flow << YAML::BeginMap;
  out << YAML::Key << "name" << YAML::Value << plan.trainer.name;
  put_rows(out, grids, plan.lives.front());
  if (!plan.needs.empty()) {
    out << YAML::Key << "needs" << YAML::Value;
    put_texts(out, plan.needs);
  }
  out << YAML::Key << "seed" << YAML::Value << plan.seed << YAML::EndMap;
  out << YAML::Key << "steps" << YAML::Value << YAML::BeginSeq;
  for (const auto& life : plan.lives) {
    if (life.command) {
      put_command_life(out, *life.command);
    } else if (&life != plan.lives.data()) {
      put_step_of(out, "restart", grids, life);
    }
    put_life_steps(out, plan.trainer, life);
  }
  out << YAML::EndSeq << YAML::Key << "expect" << YAML::Value << YAML::Flow;
  put_map(out, program_expect_rows(), plan.expect);
}

}  // namespace reprise::driver
