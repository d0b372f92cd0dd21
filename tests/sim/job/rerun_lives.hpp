#pragma once
// Runs lives of a job whose devices report wrong results. Each life starts fresh or from a state in
// memory.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/job/job_worlds.hpp"

namespace reprise::sim::rerun_lives {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr const char* kKey = "rerun_state_machine_state";
inline constexpr std::int64_t kBadIteration = 3;

enum class Wrong { kNever, kInInitialRun, kOnDevice, kEverywhere };

/// A bad result of one rank at one iteration.
struct Bad {
  Wrong wrong = Wrong::kNever;
  std::int32_t rank = 1;
  double value = kNaN;
  std::int64_t iteration = kBadIteration;
};

/// Settings of one life of a job.
struct Setting {
  Layout layout = parse_layout("tp2 dp2");
  RerunMode mode = RerunMode::kValidateResults;
  std::string nodes = "first";  ///< prefix of the devices: rank r has "<nodes>:<r>"
  std::vector<Bad> bad;
  RerunOptions options = {};
  bool knows_rerun = true;
  std::string model = "gpt-tiny";
};

inline std::string device_of(const Setting& setting, std::int32_t rank) {
  return setting.nodes + ":" + std::to_string(rank);
}

/// Returns a function that takes the correct loss and returns the loss that the rank's device
/// reports.
inline std::function<double(const ResultCall&, double)> result_of(const Setting& setting,
                                                                  std::int32_t rank) {
  if (setting.bad.empty()) return {};
  return [setting, rank](const ResultCall& call, double right) {
    for (const auto& bad : setting.bad) {
      if (bad.rank != rank || bad.iteration != call.iteration || call.call != 0) continue;
      const bool here = bad.wrong == Wrong::kEverywhere ||
                        (bad.wrong == Wrong::kInInitialRun && call.run == 0) ||
                        (bad.wrong == Wrong::kOnDevice && setting.nodes == "first");
      if (here) return bad.value;
    }
    return right;
  };
}

struct RankEnding {
  std::vector<StepRecord> records;
  std::optional<RerunExit> exit;
  std::vector<std::string> notes;  ///< messages from the load and the steps
  std::vector<std::string> excused;
  std::vector<std::string> requested;
  RerunState loaded_state = RerunState::kNotRunningYet;  ///< state right after the load
  FaultContext loaded_fault;
  RerunState state = RerunState::kNotRunningYet;
  RerunDiagnosis diagnosis = RerunDiagnosis::kNone;
  std::vector<std::string> log;
  std::vector<AppliedSamples> applied;
  DataPosition data;
};

struct Life {
  std::vector<RankEnding> ranks;
  GlobalState saved;  ///< state saved at the end; empty if the job exits without a save
  GlobalState space;  ///< training state at the end

  const RankEnding& first() const { return ranks.front(); }
  std::vector<std::string> log() const {
    std::vector<std::string> all;
    for (const auto& rank : ranks) all.insert(all.end(), rank.log.begin(), rank.log.end());
    return all;
  }
};

inline JobConfig config_of(const Setting& setting, std::int32_t rank, bool loads) {
  JobConfig config{.makeup = {.model = setting.model, .layout = setting.layout},
                   .training = {.seed = loads ? 1234U : 7U}};
  config.rerun.mode = setting.mode;
  config.hardware.device = device_of(setting, rank);
  config.rerun.result = result_of(setting, rank);
  config.rerun.options = setting.options;
  config.rerun.knows = setting.knows_rerun;
  return config;
}

inline GlobalState assembled(const std::vector<StateDict>& dicts) {
  std::vector<RankState> views;
  for (std::size_t r = 0; r < dicts.size(); ++r) {
    views.push_back({{static_cast<std::int32_t>(r)}, &dicts[r]});
  }
  judged::Findings findings;
  GlobalState state = assemble(views, findings);
  EXPECT_TRUE(findings.empty()) << findings.front();
  return state;
}

inline void load_into(TrainingJob& job, const GlobalState& saved, RankEnding& ending) {
  auto request = job.load_request(&saved.common);
  ending.notes = request.notes;
  ending.excused = request.excused;
  for (const auto& object : request.wanted.objects) ending.requested.push_back(object.key);
  fill(request.wanted, saved);
  job.take(request.wanted);
  ending.loaded_state = job.rerun().state();
  ending.loaded_fault = job.rerun().fault();
}

/// Runs up to `steps` iterations; stops when the job exits.
inline Life live(const Setting& setting, const GlobalState* from, int steps,
                 const JobPolicy& policy = {}) {
  const auto ranks = static_cast<std::size_t>(setting.layout.world_size());
  Life life;
  life.ranks.resize(ranks);
  std::vector<std::unique_ptr<TrainingJob>> jobs(ranks);
  std::vector<StateDict> saved(ranks);
  std::vector<StateDict> space(ranks);
  contracts::run_world(setting.layout.world_size(), [&](Fabric& fabric) {
    const auto r = static_cast<std::size_t>(fabric.rank().value);
    RankEnding& ending = life.ranks[r];
    jobs[r] = std::make_unique<TrainingJob>(
        config_of(setting, fabric.rank().value, from != nullptr), fabric, policy);
    TrainingJob& job = *jobs[r];
    if (from != nullptr) load_into(job, *from, ending);
    for (int step = 0; step < steps && !ending.exit; ++step) {
      StepOutcome outcome = job.advance();
      ending.exit = outcome.exit;
      if (outcome.record) ending.records.push_back(*outcome.record);
      ending.notes.insert(ending.notes.end(), outcome.notes.begin(), outcome.notes.end());
    }
    ending.state = job.rerun().state();
    ending.diagnosis = job.rerun().diagnosis();
    ending.log = job.rerun().log();
    ending.applied = job.applied_samples();
    if (!ending.exit || ending.exit->save) saved[r] = job.state();
    space[r] = job.model_space();
  });
  if (!life.first().exit || life.first().exit->save) life.saved = assembled(saved);
  life.space = assembled(space);
  return life;
}

inline Life live(const Setting& setting, const Life& from, int steps) {
  return live(setting, &from.saved, steps);
}
inline Life live(const Setting& setting, int steps) { return live(setting, nullptr, steps); }

/// Returns the state of a job without faults after that many steps.
inline const GlobalState& undisturbed(int steps) {
  static std::map<int, GlobalState> known;
  auto found = known.find(steps);
  if (found == known.end()) {
    found =
        known
            .emplace(
                steps,
                trained({.makeup = {.layout = parse_layout("tp1")}, .training = {.seed = 7}}, steps)
                    .state)
            .first;
  }
  return found->second;
}

inline bool any_holds(const std::vector<std::string>& lines, std::string_view text) {
  return std::any_of(lines.begin(), lines.end(), [text](const std::string& line) {
    return line.find(text) != std::string::npos;
  });
}

inline const Value& common_of(const GlobalState& saved, std::string_view key) {
  const Value* machine = saved.common.find("rerun_state_machine");
  EXPECT_NE(machine, nullptr);
  return *machine->find(key);
}

inline const Value& object_of(const GlobalState& saved, std::int32_t rank, std::int32_t world) {
  const auto* object = saved.object(object_key(kKey, {rank}, {world}));
  EXPECT_NE(object, nullptr) << rank;
  return object->value;
}

inline Setting with(const Bad& bad) {
  Setting setting;
  setting.bad = {bad};
  return setting;
}

/// Returns a life in which rank 1's device returned NaN for the loss. The life ended by saving a
/// fault checkpoint.
inline const Life& fault_life() {
  static const Life life = live(with({Wrong::kOnDevice}), 5);
  return life;
}

}  // namespace reprise::sim::rerun_lives
