#include "driver/programs/resume_proof.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "core/base/print.hpp"
#include "driver/programs/program_run.hpp"
#include "driver/witness/same_steps.hpp"
#include "driver/witness/step_table.hpp"
#include "driver/yaml/text_file.hpp"
#include "reports/read_error.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

namespace fs = std::filesystem;

constexpr int kSignaled = 128;  // added to the number of the signal that ended a process

std::string file_in(const std::string& folder, std::size_t life, std::size_t rank) {
  const std::string name =
      "life" + std::to_string(life) + "-rank" + std::to_string(rank) + ".jsonl";
  return (fs::path(folder) / name).string();
}

/// Describes the kill of a rank whose witness file does not say how the rank ended. The description
/// includes the phase if the rank died during one.
ProgramKill kill_in(const RankWitness& rank) {
  ProgramKill kill{.rank = rank.rank, .phase = {}, .occurrence = 0};
  if (rank.phases.empty() || !rank.phases.back().begins) return kill;
  kill.phase = rank.phases.back().name;
  for (const auto& phase : rank.phases) {
    if (phase.begins && phase.name == kill.phase) ++kill.occurrence;
  }
  return kill;
}

/// Reads the life and the rank from the name of a witness file. Returns nothing for other files.
std::optional<std::pair<std::size_t, std::size_t>> place_in(const std::string& name) {
  static const std::regex kName("life([0-9]{1,6})-rank([0-9]{1,6})\\.jsonl");
  std::smatch found;
  if (!std::regex_match(name, found, kName)) return std::nullopt;
  return std::pair(std::stoul(found[1]), std::stoul(found[2]));
}

/// Returns the number of ranks of each life that has a witness file in the folder.
std::map<std::size_t, std::size_t> worlds_in(const std::string& folder) {
  std::map<std::size_t, std::size_t> worlds;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing)) {
    const auto place = place_in(entry.path().filename().string());
    if (!place) continue;
    worlds[place->first] = std::max(worlds[place->first], place->second + 1);
  }
  if (!worlds.empty()) return worlds;
  throw Error(Code::kUsage, "holds no witness file, life0-rank0.jsonl", {.file = folder});
}

/// Determines how a rank ended from its witness file. If the file does not say, the rank is assumed
/// to have been killed. Nobody plans the exit code of a process that a signal ended.
void add_end(LifeEvidence& life) {
  const RankWitness& rank = life.ranks.back();
  ProgramEnd end;
  end.exit_code = static_cast<int>(rank.exit.value_or(0));
  if (!rank.done && !rank.exit) {
    end.exit_code = kSignaled + SIGKILL;
    end.log = "its witness does not say how it ended";
    if (!life.plan.kill) life.plan.kill = kill_in(rank);
  } else if (end.exit_code < kSignaled) {
    life.plan.exit = std::max<std::int64_t>(life.plan.exit, end.exit_code);
  }
  life.ends.push_back(std::move(end));
}

/// True if `ranks` processes can have this layout. Axes such as ep may be made of the ranks of the
/// others, so that only some of the sizes count. But each divides the number of ranks.
bool fits(const std::map<std::string, std::int64_t>& layout, std::int64_t ranks) {
  std::set<std::int64_t> worlds = {1};
  for (const auto& [axis, size] : layout) {
    if (size < 1 || ranks % size != 0) return false;
    for (const auto world : std::set<std::int64_t>(worlds)) {
      if (world <= ranks / size) worlds.insert(world * size);
    }
  }
  return layout.empty() || worlds.contains(ranks);
}

/// Reads a witness file. Adds the reason to `unread` if it can't be read.
RankWitness read_rank(const std::string& file, Findings& unread) {
  if (!fs::is_regular_file(file)) {
    unread.push_back(
        {.code = judged::kOracleVacuous,
         .text = file + (fs::exists(file) ? " is not a regular file" : " is missing")});
    return {.file = file};
  }
  try {
    return parse_witness(text_of(file), file);
  } catch (const reports::ReadError& error) {
    unread.push_back({.code = Code::kTornFile, .text = error.what()});
    return {.file = file};
  }
}

LifeEvidence read_life(const std::string& folder, std::size_t number, std::size_t ranks) {
  LifeEvidence life;
  life.stored_known = false;
  const std::string name = "life" + std::to_string(number);
  if (ranks == 0) {
    life.unread.push_back(
        {.code = judged::kOracleVacuous, .text = name + " has no witness file in " + folder});
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    life.ranks.push_back(read_rank(file_in(folder, number, rank), life.unread));
    add_end(life);
  }
  if (life.ranks.empty()) return life;
  life.plan.layout = life.ranks.front().layout;
  const std::int64_t world = life.ranks.front().world;
  if (world > static_cast<std::int64_t>(ranks)) {
    life.unread.push_back({.code = judged::kOracleVacuous,
                           .text = name + " has " + std::to_string(ranks) + " witness files, and " +
                                   std::to_string(world) + " ranks"});
  }
  if (world > 0 && !fits(life.plan.layout, world)) {
    life.unread.push_back({.code = judged::kOracleVacuous,
                           .text = name + " has " +
                                   counted(static_cast<std::uint64_t>(world), "rank") +
                                   ", but its layout does not"});
  }
  return life;
}

/// Reads all lives up to the last one that has a witness file.
std::vector<LifeEvidence> read_lives(const std::string& folder) {
  std::vector<LifeEvidence> lives;
  for (const auto& [number, ranks] : worlds_in(folder)) {
    while (lives.size() < number) lives.push_back(read_life(folder, lives.size(), 0));
    lives.push_back(read_life(folder, number, ranks));
  }
  return lives;
}

/// Returns a plan that describes the lives as they happened, because nobody planned them.
ProgramPlan plan_of(const std::vector<LifeEvidence>& lives) {
  ProgramPlan plan;
  plan.trainer.name = "a run";
  plan.trainer.keeps = 1;  // unknown, so this assumes the lowest number of kept checkpoints
  for (const auto& life : lives) {
    plan.lives.push_back(life.plan);
    for (const auto& [axis, size] : life.plan.layout) {
      auto& axes = plan.trainer.axes;
      if (std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
    }
  }
  return plan;
}

/// Assigns the checkpoints that exist now to the last life that saved. What earlier lives stored is
/// unknown, because their checkpoints may have been removed.
void add_stored(const std::string& root, std::vector<LifeEvidence>& lives) {
  Blanks blanks;
  for (const auto& life : lives) add_blanks(life.ranks, blanks);
  const auto stored = read_root(root, blanks);
  for (auto& life : lives) life.before = stored;
  for (auto life = lives.rbegin(); life != lives.rend(); ++life) {
    const bool saves = std::any_of(life->ranks.begin(), life->ranks.end(), [](const auto& rank) {
      return std::any_of(rank.states.begin(), rank.states.end(),
                         [](const auto& state) { return state.when == StateMoment::kSave; });
    });
    if (!saves) continue;
    life->after = stored;
    life->stored_known = true;
    return;
  }
}

/// Reads the second run of each life whose layout differs from that of the first life.
std::map<std::size_t, LifeEvidence> read_controls(const std::string& folder,
                                                  const ProgramPlan& plan) {
  std::map<std::size_t, LifeEvidence> controls;
  const auto worlds = worlds_in(folder);
  for (std::size_t life = 1; life < plan.lives.size(); ++life) {
    if (!after_change(plan, life)) continue;
    const auto ranks = worlds.find(life);
    if (ranks == worlds.end()) {
      throw Error(Code::kUsage,
                  "holds no second run of life " + std::to_string(life) +
                      ", which has another layout than the first; its files are named life" +
                      std::to_string(life) + "-rank0.jsonl and so on",
                  {.file = folder});
    }
    controls.emplace(life, read_life(folder, life, ranks->second));
  }
  return controls;
}

/// Reads the only life in the folder, whatever its number.
LifeEvidence read_only_life(const std::string& folder) {
  const auto worlds = worlds_in(folder);
  if (worlds.size() > 1) {
    throw Error(Code::kUsage,
                "holds witness files of several lives; it must be a run with one life",
                {.file = folder});
  }
  return read_life(folder, worlds.begin()->first, worlds.begin()->second);
}

/// True if the name of a witness file has the life that is told in it.
bool is_named_by(const RankWitness& rank) {
  const auto place = place_in(fs::path(rank.file).filename().string());
  return place && static_cast<std::int64_t>(place->first) == rank.life;
}

/// True if the run is complete, so that lives can be compared with it. Otherwise adds an
/// inconclusive finding: a witness file can't be read, or a rank did not run to its end.
bool is_usable(const LifeEvidence& run, const std::string& called, Findings& findings,
               SourceLine line = SourceLine::here()) {
  std::string flaw = run.unread.empty() ? "" : run.unread.front().text;
  for (std::size_t i = 0; i < run.ranks.size() && flaw.empty(); ++i) {
    const RankWitness& rank = run.ranks[i];
    if (!rank.done || rank.torn) flaw = rank.file + " does not say that it is done";
    if (rank.exit.value_or(0) >= kSignaled) flaw = rank.file + " says that a signal ended it";
    const bool own = rank.rank == static_cast<std::int64_t>(i) &&
                     rank.world == static_cast<std::int64_t>(run.ranks.size()) &&
                     rank.layout == run.plan.layout && is_named_by(rank);
    if (!own) flaw = rank.file + " belongs to another life, rank, world or layout";
  }
  if (flaw.empty()) return true;
  findings.push_back({.code = judged::kOracleVacuous,
                      .text = called + " can't be compared with: " + flaw,
                      .line = line,
                      .severity = Severity::kInconclusive});
  return false;
}

/// Lists seeds and versions of packages that are not those of the uninterrupted run.
std::vector<std::string> other_origins(const std::vector<LifeEvidence>& lives,
                                       const LifeEvidence& uninterrupted) {
  std::set<std::string> others;
  const RankWitness none;
  const RankWitness& there = uninterrupted.ranks.empty() ? none : uninterrupted.ranks.front();
  const std::string here = ", but in the uninterrupted run ";
  for (std::size_t life = 0; life < lives.size(); ++life) {
    for (const auto& rank : lives[life].ranks) {
      if (rank.seed && there.seed && rank.seed != there.seed) {
        others.insert("seed: " + std::to_string(*rank.seed) + " in " + life_name(life) + here +
                      std::to_string(*there.seed));
      }
      for (const auto& [package, version] : rank.versions) {
        const auto other = there.versions.find(package);
        if (other == there.versions.end() || other->second == version) continue;
        others.insert(package + ": " + version + " in " + life_name(life) + here + other->second);
      }
    }
  }
  return {others.begin(), others.end()};
}

/// Appends advice to failures that compare with the uninterrupted run. If the script is not
/// deterministic, nothing else shows it once a life has saved or loaded.
void advise_second(Findings& findings) {
  for (auto& finding : findings) {
    const bool may_be_chance =
        finding.code == judged::kTrajectoryDivergence || finding.code == judged::kDataStreamSkip;
    if (!finding.fails() || finding.stream.empty() || !may_be_chance) continue;
    finding.text +=
        "; if the script may not be deterministic, run it uninterrupted once more, and name that "
        "witness folder with --second";
    return;
  }
}

/// Appends advice to findings that a new layout may have caused. Under another layout, sums may
/// differ in their last bits although nothing is lost.
void advise(const ProgramPlan& plan, Findings& findings) {
  if (plan.expect.goes_on == GoesOn::kLikeControl) return;
  for (auto& finding : findings) {
    if (finding.code != judged::kTrajectoryDivergence ||
        !after_change(plan, finding.life.value_or(0)))
      continue;
    finding.text +=
        "; the layout changed, so sums may be rounded differently: run this life a second time "
        "from the same checkpoint, and name its witness folder as the control";
  }
}

}  // namespace

reports::ScenarioResult prove_resume(const ResumeProof& runs) {
  auto lives = read_lives(runs.resumed);
  if (lives.size() < 2) {
    throw Error(Code::kUsage, "has only one life: nothing was resumed", {.file = runs.resumed});
  }
  const LifeEvidence uninterrupted = read_only_life(runs.uninterrupted);
  // The last life must be judged up to its end, so it is not treated as killed.
  lives.back().plan.kill.reset();
  if (!runs.checkpoints.empty()) add_stored(runs.checkpoints, lives);
  ProgramPlan plan = plan_of(lives);
  ControlRuns controls;
  Findings doubts;
  if (is_usable(uninterrupted, "the uninterrupted run", doubts)) {
    controls.uninterrupted = &uninterrupted;
  }
  std::map<std::size_t, LifeEvidence> again;
  if (!runs.control.empty()) {
    plan.expect.goes_on = GoesOn::kLikeControl;
    again = read_controls(runs.control, plan);
    for (const auto& [life, evidence] : again) {
      if (is_usable(evidence, "the second run of " + life_name(life), doubts)) {
        controls.again[life] = &evidence;
      }
    }
  }
  if (steps_of(lives.back().ranks).empty()) {
    doubts.push_back({.code = judged::kOracleVacuous,
                      .text = life_name(lives.size() - 1) + " trains no step after its load",
                      .severity = Severity::kInconclusive});
  }
  Findings findings = judge_program(plan, lives, controls);
  if (!runs.second.empty()) {
    const LifeEvidence second = read_only_life(runs.second);
    if (is_usable(second, "the second uninterrupted run", doubts) &&
        controls.uninterrupted != nullptr) {
      settle_other_course(other_course(uninterrupted, second), findings);
    }
  }
  findings.append(doubts);
  advise(plan, findings);
  if (runs.second.empty()) advise_second(findings);
  if (findings.empty() && !runs.cold.empty()) {
    judge_cold_life(plan, lives, read_only_life(runs.cold), controls, findings);
  }
  reports::ScenarioResult result = describe_lives(plan, lives, controls);
  result.name = runs.resumed;
  result.file = runs.resumed;
  result.proves = "The run goes on from its checkpoints as if it had never stopped.";
  if (!result.ranks.empty()) {
    auto& excused = result.ranks.front().excused;
    for (auto& other : other_origins(lives, uninterrupted)) excused.push_back(std::move(other));
  }
  conclude(plan, findings, result);
  reports::restate_failure(result);
  return result;
}

}  // namespace reprise::driver
