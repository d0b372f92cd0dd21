#include "driver/explore/timeline.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>

#include "core/base/print.hpp"
#include "core/save/commit_protocol.hpp"
#include "core/save/phases.hpp"
#include "core/save/retention.hpp"
#include "driver/explore/marks.hpp"
#include "driver/judges/life_end.hpp"
#include "driver/judges/verdict.hpp"
#include "driver/random/draw.hpp"
#include "driver/random/generator.hpp"
#include "driver/random/outcome_rules.hpp"
#include "driver/runs/run.hpp"
#include "reprise/error.hpp"
#include "sim/job/model/model.hpp"

namespace reprise::driver {
namespace {

using sim::FaultKind;
using sim::FaultMoment;

constexpr std::int32_t kWorldMax = 4;
constexpr std::array kMoments = {FaultMoment::kBefore, FaultMoment::kDuring, FaultMoment::kAfter};
/// Faults of a save that leave either the old checkpoint or the new one.
constexpr std::array kHonestFaults = {FaultKind::kWriteError, FaultKind::kNoSpace,
                                      FaultKind::kSyncError, FaultKind::kDirectorySyncError,
                                      FaultKind::kTornWrite};
/// Faults of a save after which a checkpoint may be damaged, or may be gone after a power cut.
constexpr std::array kLies = {FaultKind::kShortWrite, FaultKind::kFlipWrite, FaultKind::kLostSync,
                              FaultKind::kLostRename, FaultKind::kFleetingRename};

/// True if the store of this job may lie and its checkpoints may be damaged. Loads may then fall
/// back or be refused, and the loads of all other jobs must continue.
bool may_be_lied_to(const Scenario& scenario) { return scenario.checkpoint.falls_back; }

void draw_checkpoint(Stream random, CheckpointPlan& plan) {
  plan.falls_back = plan.checks = chance(random, 3);
  plan.keep = number(random, 0, 2);
  // A load that doubts a record reads it again, so the rule of one read does not hold where the
  // store lies.
  plan.reads_once = chance(random, 4) && !plan.falls_back;
  plan.keeps_plan = chance(random, 2);
  draw_async(random, {.late_one_in = 3, .in_flight_most = 2, .small_one_in = 4}, plan);
}

Scenario job_of(std::uint64_t seed) {
  Stream random = Stream(seed).split("job");
  Scenario scenario;
  scenario.name = "explored";
  scenario.proves = "A job goes on from a committed checkpoint, whatever goes wrong in its lives.";
  scenario.model = chance(random, 4) ? "moe-tiny" : "gpt-tiny";
  scenario.seed = 1 + seed % 1000;
  scenario.shard_dim = chance(random, 2) ? 0 : number(random, 1, 2);
  draw_checkpoint(random.split("checkpoint"), scenario.checkpoint);
  if (may_be_lied_to(scenario)) {
    scenario.expect.outcomes = {Outcome::kContinued, Outcome::kFellBack, Outcome::kRefused};
  }
  scenario.lanes = {LaneKind::kSim};
  scenario.lanes_reason = "its schedule and its power cuts are those of the simulated world";
  return scenario;
}

std::int32_t any_rank(Stream& random, const LifePlan& plan) {
  return static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(plan.world_size())));
}

void draw_step(Stream& random, FaultAction& crash) {
  const std::size_t all = kPrepareSteps.size() + kCommitSteps.size() + kRetentionSteps.size();
  std::size_t drawn = static_cast<std::size_t>(random.below(all));
  const auto take = [&](std::string_view phase, const auto& steps) {
    if (!crash.phase.empty()) return;
    if (drawn >= steps.size()) {
      drawn -= steps.size();
      return;
    }
    crash.phase = phase;
    crash.step = steps[drawn];
  };
  take(phase::kPrepare, kPrepareSteps);
  take(phase::kCommit, kCommitSteps);
  take(phase::kRetention, kRetentionSteps);
}

FaultAction crash_in(Stream& random, std::span<const std::string_view> phases,
                     const LifePlan& plan) {
  FaultAction crash;
  crash.rank = any_rank(random, plan);
  crash.moment = one_of(random, kMoments);
  crash.nth = crash.moment == FaultMoment::kDuring ? number(random, 0, 2) : 0;
  crash.fires = Fires::kMaybe;
  const bool save = phases.data() == phases_of_save().data();
  if (save && chance(random, 2)) {
    draw_step(random, crash);
  } else {
    crash.phase = one_of(random, phases);
  }
  return crash;
}

FaultAction store_fault(Stream& random, FaultKind kind, const LifePlan& plan) {
  FaultAction fault;
  fault.kind = kind;
  fault.rank = any_rank(random, plan);
  fault.nth = number(random, 0, 3);
  fault.fires = Fires::kMaybe;
  if (kind == FaultKind::kFlipWrite || kind == FaultKind::kShortWrite) {
    fault.file = sim::FileKind::kPayload;
    fault.nth = 0;
  }
  if (kind == FaultKind::kFlipWrite || kind == FaultKind::kFlipRead) {
    fault.bit = number(random, 0, 100'000);
  }
  return fault;
}

/// Adds a fault of the load at the start of the life.
void add_load_fault(Stream& random, bool lies, LifePlan& plan) {
  FaultAction fault = crash_in(random, phases_of_load(), plan);
  if (lies && chance(random, 2)) {
    constexpr std::array kReads = {FaultKind::kReadError, FaultKind::kFlipRead};
    fault = store_fault(random, one_of(random, kReads), plan);
    fault.phase = phase::kRead;
    fault.nth = number(random, 0, 2);
  }
  plan.actions.insert(plan.actions.begin(), fault);
}

/// Lets every save of the life fail.
void let_saves_fail(LifePlan& plan) {
  for (auto& action : plan.actions) {
    if (auto* save = std::get_if<SaveAction>(&action)) save->fails.how = Failing::How::kMaybe;
  }
}

/// Adds a fault before a save, mostly the last one, and lets that save fail. Half of the lives save
/// once more after that.
void add_save_fault(Stream& random, const Scenario& scenario, LifePlan& plan) {
  const bool lies = may_be_lied_to(scenario);
  const bool has_checkpoint = !scenario.lives.empty();
  FaultAction fault = crash_in(random, phases_of_save(), plan);
  const std::uint64_t drawn = random.below(lies ? 3 : 2);
  if (drawn == 1) fault = store_fault(random, one_of(random, kHonestFaults), plan);
  if (drawn == 2) fault = store_fault(random, one_of(random, kLies), plan);
  if (lies && chance(random, 6)) {  // perhaps no save of this life is committed
    let_saves_fail(plan);
    plan.actions.insert(plan.actions.begin() + 1, fault);
  } else if ((lies || has_checkpoint) && scenario.checkpoint.in_flight > 1 && chance(random, 2)) {
    // The fault may strike while another save is in flight.
    let_saves_fail(plan);
    plan.actions.insert(plan.actions.end() - 1, fault);
  } else {
    std::get<SaveAction>(plan.actions.back()).fails.how = Failing::How::kMaybe;
    plan.actions.insert(plan.actions.end() - 1, {FinalizeAction{}, fault});
  }
  if (!chance(random, 2)) return;
  plan.actions.insert(plan.actions.end(), {TrainAction{1}, SaveAction{}});
  std::get<SaveAction>(plan.actions.back()).fails.how = Failing::How::kMaybe;
}

/// True if an earlier life may have left a damaged checkpoint, or none.
bool may_be_damaged(const Scenario& scenario) {
  const auto damages = [](const Action& action) {
    if (std::holds_alternative<DamageAction>(action)) return true;
    const auto* save = std::get_if<SaveAction>(&action);
    if (save != nullptr && save->fails.how != Failing::How::kNever) return true;
    const auto* fault = std::get_if<FaultAction>(&action);
    return fault != nullptr && std::count(kLies.begin(), kLies.end(), fault->kind) > 0;
  };
  return std::any_of(scenario.lives.begin(), scenario.lives.end(), [&](const LifePlan& plan) {
    return std::any_of(plan.actions.begin(), plan.actions.end(), damages);
  });
}

void add_damage(Stream& random, LifePlan& plan) {
  constexpr std::array kDamaged = {sim::FileKind::kMetadata, sim::FileKind::kCommon,
                                   sim::FileKind::kCheckpoint};
  DamageAction damage;
  damage.what = one_of(random, kDamaged);
  if (damage.what != sim::FileKind::kCheckpoint) damage.cut = 1;
  plan.actions.insert(plan.actions.end(), {FinalizeAction{}, damage});
}

/// Returns the life in which a device computes wrong results; the next life runs on another one and
/// decides. Nothing in most jobs, and in those whose checkpoints may be damaged.
std::optional<std::size_t> rerun_life(const Scenario& scenario) {
  if (may_be_lied_to(scenario) || scenario.seed % 5 != 0) return std::nullopt;
  return 1 + scenario.seed / 5 % (kTimelineLives - 3);
}

/// Ends the life with a fault checkpoint, because results are wrong on one device.
void add_bad_result(Stream& random, LifePlan& plan) {
  BadResultAction bad;
  bad.kind = sim::ResultFault::kPersistentError;
  bad.ranks = {any_rank(random, plan)};
  plan.actions.insert(plan.actions.end(), {TrainAction{1}, bad, ExitAction{16, true}});
}

void add_steps(Stream& random, LifePlan& plan) {
  plan.actions.emplace_back(TrainAction{number(random, 1, 2)});
  plan.actions.emplace_back(SaveAction{});
  if (chance(random, 2)) plan.actions.emplace_back(TrainAction{1});
  plan.actions.emplace_back(SaveAction{});
}

/// Gives the life other layouts than the one before it in half of the cases.
void draw_layout(Stream& random, const std::string& model, bool first, LifePlan& plan) {
  if (first || chance(random, 2)) {
    const CaseLimits limits{.world_max = kWorldMax};
    plan.layout = random_layout(random, model, random_world(random, limits));
  }
  if (!first && !chance(random, 2)) return;
  plan.optimizer_sharding = random_sharding(random);
  forget_buckets(plan);
}

LifePlan life_of(Stream random, const Scenario& scenario, std::size_t number) {
  const bool first = number == 0;
  LifePlan plan;
  if (!first) plan = scenario.lives.back();
  plan.actions.clear();
  const auto rerun = rerun_life(scenario);
  plan.other_device = rerun && number == *rerun + 1;
  plan.rerun =
      rerun && number <= *rerun + 1 ? sim::RerunMode::kValidateResults : sim::RerunMode::kDisabled;
  if (plan.other_device) {
    plan.actions = {ExitAction{17, false}};
    return plan;
  }
  Stream layouts = random.split("layout");
  draw_layout(layouts, scenario.model, first, plan);
  Stream steps = random.split("steps");
  if (number + 1 == kTimelineLives) {
    plan.actions.emplace_back(TrainAction{1});
    return plan;
  }
  add_steps(steps, plan);
  Stream faults = random.split("faults");
  const bool lies = may_be_lied_to(scenario);
  if (rerun == number) {
    add_bad_result(faults, plan);
    return plan;
  }
  if (!chance(faults, 2)) return plan;
  const std::uint64_t drawn = faults.below(8);
  if (drawn == 0 && !first) {
    add_load_fault(faults, lies, plan);
  } else if (drawn == 1 && lies && !first && !may_be_damaged(scenario)) {
    add_damage(faults, plan);
  } else {
    add_save_fault(faults, scenario, plan);
  }
  return plan;
}

std::string outcome_text(const Scenario& scenario, std::size_t number,
                         std::span<const LifeRecord> lives) {
  return number < lives.size() ? reports::name_of(end_of(scenario, number, lives[number]).outcome)
                               : "none";
}

/// Returns the tuples of a life. For each fault that fired: its phase and step, its kind, how its
/// life ended, and how the next one went. For a life that was cut short: the states of the
/// protocols (properties/protocol.hpp) in which its ranks were, each once.
std::vector<std::string> tuples_of(const Scenario& scenario, std::size_t number,
                                   std::span<const LifeRecord> lives) {
  std::vector<std::string> tuples;
  for (const auto& rank : lives[number].ranks) {
    for (const auto& fault : rank.faults) {
      if (!fault.fired) continue;
      tuples.push_back(site_of(fault) + " " + std::string(name_of(fault.spec.kind)) + " -> " +
                       outcome_text(scenario, number, lives) + ", then " +
                       outcome_text(scenario, number + 1, lives));
    }
  }
  std::set<std::string> unended;
  for (const auto& rank : lives[number].ranks)
    unended.insert(rank.unended.begin(), rank.unended.end());
  if (!unended.empty()) tuples.push_back("left in: " + join(unended, " | "));
  return tuples;
}

void add(const std::vector<std::string>& names, std::size_t life, std::vector<Sighting>& all) {
  for (const auto& name : std::set<std::string>(names.begin(), names.end())) {
    all.push_back({name, life});
  }
}

}  // namespace

std::vector<std::string> timeline_subjects() { return {"gpt-tiny", "moe-tiny", "damage", "rerun"}; }

bool is_about(std::uint64_t seed, const std::string& subject) {
  const Scenario job = job_of(seed);
  if (subject == "damage") return may_be_lied_to(job);
  if (subject == "rerun") return rerun_life(job).has_value();
  return job.model == subject;
}

Scenario scenario_of(const Recipe& recipe) {
  Scenario scenario = job_of(recipe.seed);
  for (std::size_t i = 0; i < kTimelineLives; ++i) {
    const Stream random = Stream(recipe.seed_of_life(i)).split("life").split(i);
    scenario.lives.push_back(life_of(random, scenario, i));
  }
  scenario.optimizer_sharding = scenario.lives.front().optimizer_sharding;
  scenario.expect.every_rank_owns =
      std::all_of(scenario.lives.begin() + 1, scenario.lives.end(),
                  [&](const auto& plan) { return every_rank_owns(plan, scenario.model); });
  return scenario;
}

LaneOptions options_of(const Recipe& recipe, const std::string& mutant) {
  LaneOptions options{.seed = recipe.seed, .mutant = mutant};
  options.schedule = [recipe](std::size_t life) { return recipe.schedule_of(life); };
  return options;
}

namespace {

/// Runs the lives and reads off what was seen.
void run_lives_of(const Scenario& scenario, const LaneOptions& options, TimelineResult& seen) {
  const auto lane = make_sim_lane(scenario, options);
  const sim::Policies policies = policies_of(options);
  std::vector<LifeRecord> lives;
  std::vector<StoreView> stores;
  Past past;
  bool asked = false;
  for (std::size_t i = 0; i < scenario.lives.size(); ++i) {
    lives.push_back(lane->run(i, past));
    asked = asked || lives.back().asked > 0;
    stores.push_back(view_of(lane->store()));
    end_life(scenario, i, {lane->store(), *options.parsed}, policies, lives.back(), past);
    seen.lives.push_back({lives.back().decisions, lives.back().fibers});
    if (!may_go_on(scenario, i, lives.back())) break;
  }
  lane->finish();
  for (std::size_t i = 0; i < lives.size(); ++i) {
    add(marks_of({scenario, i, lives, stores, past}), i, seen.marks);
    add(tuples_of(scenario, i, lives), i, seen.tuples);
  }
  const reports::ScenarioResult result = judge(scenario, lives);
  seen.verdict = result.verdict;
  seen.code = result.code;
  seen.reason = result.reason;
  seen.unasked = !options.mutant.empty() && !asked;
}

}  // namespace

TimelineResult run_timeline(const Recipe& recipe, const std::string& mutant) {
  TimelineResult seen;
  try {
    run_lives_of(scenario_of(recipe), options_of(recipe, mutant), seen);
  } catch (const Error& error) {
    seen.verdict = reports::Verdict::kFail;
    seen.code = name_of(error.code());
    seen.reason = error.message();
  }
  return seen;
}

}  // namespace reprise::driver
