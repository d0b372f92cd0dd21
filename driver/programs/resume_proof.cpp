#include "driver/programs/resume_proof.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>

#include "driver/programs/program_run.hpp"
#include "driver/witness/course_judge.hpp"
#include "driver/yaml/text_file.hpp"
#include "reports/read_error.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

namespace fs = std::filesystem;

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

/// Determines how a rank ended from its witness file. If the file does not say, the rank is assumed
/// to have been killed.
void add_end(LifeEvidence& life) {
  const RankWitness& rank = life.ranks.back();
  ProgramEnd end;
  end.exit_code = static_cast<int>(rank.exit.value_or(0));
  if (!rank.done && !rank.exit) {
    end.exit_code = 128 + SIGKILL;
    end.log = "its witness does not say how it ended";
    if (!life.plan.kill) life.plan.kill = kill_in(rank);
  } else {
    life.plan.exit = std::max<std::int64_t>(life.plan.exit, end.exit_code);
  }
  life.ends.push_back(std::move(end));
}

LifeEvidence read_life(const std::string& folder, std::size_t number) {
  LifeEvidence life;
  life.stored_known = false;
  for (std::size_t rank = 0; fs::exists(file_in(folder, number, rank)); ++rank) {
    const std::string file = file_in(folder, number, rank);
    life.ranks.emplace_back();
    try {
      life.ranks.back() = parse_witness(text_of(file), file);
    } catch (const reports::ReadError& error) {
      life.unread.emplace_back(error.what());
    }
    add_end(life);
  }
  if (!life.ranks.empty()) life.plan.layout = life.ranks.front().layout;
  const auto world = life.ranks.empty() ? 0 : life.ranks.front().world;
  if (world > static_cast<std::int64_t>(life.ranks.size())) {
    life.unread.push_back("life" + std::to_string(number) + " has " +
                          std::to_string(life.ranks.size()) + " witness files, and " +
                          std::to_string(world) + " ranks");
  }
  return life;
}

std::vector<LifeEvidence> read_lives(const std::string& folder) {
  std::vector<LifeEvidence> lives;
  while (fs::exists(file_in(folder, lives.size(), 0))) {
    lives.push_back(read_life(folder, lives.size()));
  }
  if (!lives.empty()) return lives;
  throw Error(Code::kUsage, "holds no witness file, life0-rank0.jsonl", {.file = folder});
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
  for (std::size_t life = 1; life < plan.lives.size(); ++life) {
    if (!after_change(plan, life)) continue;
    if (!fs::exists(file_in(folder, life, 0))) {
      throw Error(Code::kUsage,
                  "holds no second run of life " + std::to_string(life) +
                      ", which has another layout than the first; its files are named life" +
                      std::to_string(life) + "-rank0.jsonl and so on",
                  {.file = folder});
    }
    controls.emplace(life, read_life(folder, life));
  }
  return controls;
}

/// Reads the only life in the folder, whatever its number.
LifeEvidence read_only_life(const std::string& folder, std::size_t lives_most) {
  std::optional<std::size_t> only;
  for (std::size_t life = 0; life < lives_most; ++life) {
    if (!fs::exists(file_in(folder, life, 0))) continue;
    if (only) {
      throw Error(Code::kUsage, "holds witness files of several lives; it must be a run of one",
                  {.file = folder});
    }
    only = life;
  }
  if (only) return read_life(folder, *only);
  throw Error(Code::kUsage, "holds no witness file, life0-rank0.jsonl", {.file = folder});
}

/// True if the run is complete, so that lives can be compared with it. Otherwise adds an
/// inconclusive finding: a witness file can't be read, or a rank did not run to its end.
bool is_usable(const LifeEvidence& run, const std::string& called, WitnessFindings& findings) {
  std::string flaw = run.unread.empty() ? "" : run.unread.front();
  for (const auto& rank : run.ranks) {
    if (flaw.empty() && (!rank.done || rank.torn))
      flaw = rank.file + " does not say that it is done";
  }
  if (flaw.empty()) return true;
  findings.push_back({.code = judged::kOracleVacuous,
                      .text = called + " can't be compared with: " + flaw,
                      .inconclusive = true});
  return false;
}

/// Appends advice to findings that a new layout may have caused. Under another layout, sums may
/// differ in their last bits although nothing is lost.
void advise(const ProgramPlan& plan, WitnessFindings& findings) {
  if (plan.expect.goes_on == GoesOn::kLikeControl) return;
  for (auto& finding : findings) {
    if (finding.code != judged::kTrajectoryDivergence || !after_change(plan, finding.life))
      continue;
    finding.text +=
        "; the layout changed, so sums may be rounded otherwise: run this life a second time from "
        "the same checkpoint, and name its witness folder as the control";
  }
}

}  // namespace

reports::ScenarioResult prove_resume(const ResumeProof& runs) {
  auto lives = read_lives(runs.resumed);
  if (lives.size() < 2) {
    throw Error(Code::kUsage, "has one life alone: nothing was resumed", {.file = runs.resumed});
  }
  const LifeEvidence uninterrupted = read_only_life(runs.uninterrupted, lives.size());
  // The last life must be judged up to its end, so it is not treated as killed.
  lives.back().plan.kill.reset();
  if (!runs.checkpoints.empty()) add_stored(runs.checkpoints, lives);
  ProgramPlan plan = plan_of(lives);
  ControlRuns controls;
  WitnessFindings doubts;
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
                      .inconclusive = true});
  }
  WitnessFindings findings = judge_program(plan, lives, controls);
  findings.insert(findings.end(), doubts.begin(), doubts.end());
  advise(plan, findings);
  if (findings.empty() && !runs.cold.empty()) {
    judge_cold_life(plan, lives, read_only_life(runs.cold, lives.size()), controls, findings);
  }
  reports::ScenarioResult result = describe_lives(plan, lives, controls);
  result.name = runs.resumed;
  result.file = runs.resumed;
  result.proves = "The run goes on from its checkpoints as if it had never stopped.";
  conclude(plan, findings, result);
  reports::restate_failure(result);
  return result;
}

}  // namespace reprise::driver
