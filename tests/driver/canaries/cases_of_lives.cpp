#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "core/base/codes.hpp"
#include "driver/judges/life_judge.hpp"
#include "driver/judges/store_judge.hpp"
#include "driver/judges/verdict.hpp"
#include "tests/driver/canaries/finding_case.hpp"
#include "tests/driver/good_life.hpp"
#include "tests/driver/small_scenario.hpp"

namespace reprise::driver::test {
namespace {

using Ranks = std::vector<RankRecord>;

const std::vector<Life> kSavedOnce = {{"dp2", {TrainAction{1}, SaveAction{}}}, {"dp2", {}}};
const std::string kOlder = std::string(kCheckpointRoot) + "/iter_0000001";

Codes codes_found(const Scenario& scenario, const std::vector<LifeRecord>& lives) {
  Codes codes = {judge(scenario, lives).code};
  for (const auto& [code, findings] : driver::codes_of(lives)) codes.insert(code);
  return codes;
}

/// Returns what the judge of lives says of two ranks whose records `spoil` made wrong.
std::function<Codes()> life(void (*spoil)(Ranks&)) {
  return [spoil] {
    LifeRecord life = good_life();
    spoil(life.ranks);
    return codes_of(judge_life(life));
  };
}

Scenario two_lives() {
  return scenario_of({{"dp2", {TrainAction{1}, SaveAction{}, TrainAction{1}, SaveAction{}}},
                      {"dp2", {TrainAction{1}}}});
}

/// Returns what is said of the store of a life that saved twice, after `spoil`.
std::function<Codes()> store(void (*spoil)(Store&, CheckpointPlan&)) {
  return [spoil] {
    Rig rig(two_lives());
    LifeRecord life = rig.run(0);
    rig.end(0, life);
    CheckpointPlan plan;
    spoil(rig.store(), plan);
    return codes_of(judge_store(rig.judged(), plan, rig.past()));
  };
}

/// Returns what is said of a job that does the actions.
std::function<Codes()> job(std::vector<Action> actions) {
  return [actions = std::move(actions)] {
    const Scenario scenario = scenario_of({{"dp2", actions}, {"dp2", {TrainAction{1}}}});
    return codes_found(scenario, Rig(scenario).run_all());
  };
}

Value& entry_of(Value& dict, std::string_view key) {
  for (auto& [name, value] : *dict.as<Dict>()) {
    if (name == Value(std::string(key))) return value;
  }
  throw std::invalid_argument("there is no entry " + std::string(key));
}

/// The checkpoint seems to be of a job with other tensor-parallel ranks, so that the load leaves
/// its random streams behind.
Codes told_of_another_layout() {
  Rig rig(two_lives());
  std::vector<LifeRecord> lives = {rig.run(0)};
  rig.end(0, lives[0]);
  Interference lie;
  lie.common = [](Value& common) {
    entry_of(entry_of(common, "args"), "tensor_model_parallel_size") = Value(2);
  };
  lives.push_back(rig.run(1, {}, lie));
  return codes_found(rig.scenario(), lives);
}

/// Returns what is said of a program that takes the place of the job's last life, and is to leave
/// the checkpoint of step `leaves`, if any.
std::function<Codes()> command(const std::vector<Life>& lives, const std::string& line,
                               std::optional<std::int64_t> leaves = {}) {
  Scenario scenario = scenario_of(lives);
  scenario.lanes = {LaneKind::kSim};
  scenario.lives.back().command = CommandLife{
      .command = {"sh", "-c", "cd \"$0\" && " + line, "{checkpoints}"}, .leaves = leaves};
  return [scenario = std::move(scenario)] {
    const ScenarioRun run =
        run_watched(scenario, LaneKind::kSim, {.asked_seams = std::make_shared<sim::SeamSet>()});
    Codes codes(run.codes.begin(), run.codes.end());
    codes.insert(run.result.code);
    return codes;
  };
}

}  // namespace

std::vector<FindingCase> cases_of_lives() {
  return {
      {"replica_audit", judged::kFalseReplica,
       life([](Ranks& ranks) { ranks[1].audits[1].items[0].hashes[1] = 8; })},
      {"life_judge", judged::kReadTwice, life([](Ranks& ranks) {
         ranks[0].loads[0].bytes_read = 101;
         ranks[0].loads[0].bytes_allowed = 100;
       })},
      {"life_judge", judged::kMixedGeneration,
       life([](Ranks& ranks) { ranks[1].loads[0].step = 5; })},
      {"life_judge", judged::kOracleVacuous,
       life([](Ranks& ranks) { ranks[0].loads[0].stored = {}; })},
      {"store_judge", judged::kLastGoodDeleted,
       store([](auto& store, auto&) { store.remove(kOlder); })},
      {"store_judge", judged::kRetentionExceeded,
       store([](auto&, CheckpointPlan& plan) { plan.keep = 1; })},
      {"rank_judge", judged::kVerdictDisagreement,
       job({TrainAction{1}, SaveAction{.fails = {Failing::How::kAny}}})},
      {"rank_judge", Code::kLayoutMismatch, told_of_another_layout},
      {"rank_judge", judged::kKeysetAsymmetry, told_of_another_layout},
      {"foreign_life", judged::kVerdictDisagreement, command(kSavedOnce, "exit 3")},
      {"foreign_life", judged::kCommitMissing, command(kSavedOnce, "true", 2)},
      {"foreign_life", judged::kBitMismatch,
       command(kSavedOnce,
               "dd if=/dev/zero of=iter_0000001/__0_0.distcp bs=1 seek=5000 count=400 conv=notrunc "
               "2> /dev/null",
               1)},
      {"foreign_life", Code::kTrackerDangling, command({{"dp2", {}}}, "true")},
      {"foreign_life", Code::kTrackerDangling,
       command({{"dp2", {}}}, "cp -r " REPRISE_TEST_DATA
                              "/mcore_0.16.1_gpt_dp2/. . && rm iter_0000010/__0_0.distcp")},
  };
}

}  // namespace reprise::driver::test
