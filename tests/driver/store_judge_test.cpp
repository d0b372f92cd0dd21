// Tests the store judge. Each case puts one error into the store after a life.

#include "driver/judges/store_judge.hpp"
#include "core/ports/whole_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/format/bytes_item.hpp"
#include "core/format/tracker.hpp"
#include "sim/faults/at_rest.hpp"
#include "sim/faults/checkpoint_file.hpp"
#include "sim/job/rerun/rerun_machine.hpp"
#include "tests/driver/small_scenario.hpp"

namespace reprise::driver {
namespace {

const std::string kRoot = kCheckpointRoot;
const std::string kNewest = kRoot + "/iter_0000003";
const std::string kSecond = kRoot + "/iter_0000002";
const std::string kOldest = kRoot + "/iter_0000001";

void track(Store& store, std::int64_t step) {
  write_atomically(store, kRoot + "/" + std::string(kTrackerFile),
                   write_tracker({.step = Step{step}}));
}

void put_rerun_state(Store& store, sim::RerunState state) {
  Checkpoint checkpoint = Checkpoint::open(store, kNewest);
  Value common = *checkpoint.common()->item.value;
  common.as<Dict>()->emplace_back(
      "rerun_state_machine",
      sim::encode({.mode = sim::RerunMode::kValidateResults, .state = state, .iteration = 3}));
  write_durably(store, kNewest + "/common.pt", write_bytes_item(common));
}

/// Removes the first tensor of the optimizer from what the newest checkpoint says that it holds.
void forget_a_slot(Store& store) {
  Metadata metadata = Checkpoint::open(store, kNewest).metadata();
  auto& tensors = metadata.catalog.tensors;
  tensors.erase(std::find_if(tensors.begin(), tensors.end(), [](const auto& tensor) {
    return tensor.key.starts_with("optimizer.");
  }));
  write_durably(store, kNewest + "/" + std::string(kMetadataFile), write_metadata(metadata));
}

/// Flips a bit in each of 400 bytes. With a single byte, the flip might hit one that no check
/// covers.
void spoil(Store& store, const std::string& directory) {
  const std::string file = sim::files_of(store, directory, sim::FileKind::kPayload).front();
  for (std::uint64_t byte = 5000; byte < 5400; ++byte) sim::flip_bit(store, file, byte);
}

/// Edits the record of three saves: the second save is damaged, and another life made the third
/// save, after it continued from the step `parent`.
void pass_over_second(Past& past, Step parent) {
  past.saves[1].damaged = true;
  past.saves[2].life = 1;
  past.saves[2].parent_step = parent.value;
}

/// Adds a fourth save, of the same step as the second one. Another life made it, after it loaded
/// the first save.
void save_second_again(Store& store, Past& past) {
  SavePoint again = past.saves[1];
  again.life = 1;
  again.parent_step = 1;
  past.saves.push_back(again);
  track(store, 2);
}

/// Edits the record of three saves: the newest is damaged, and another life loaded the second one
/// and saved its step again.
void pass_over_newest(Store& store, Past& past) {
  past.saves[2].damaged = true;
  save_second_again(store, past);
  past.saves[3].parent_step = 2;
}

std::set<std::string> codes_of(const Findings& findings) {
  std::set<std::string> codes;
  for (const auto& finding : findings) codes.emplace(name_of(finding.code));
  return codes;
}

TEST(StoreJudge, a_table_of_what_can_be_wrong_after_three_saves__tp2) {
  struct Row {
    std::string what;
    std::function<void(Store&, CheckpointPlan&, Past&)> change;
    std::set<std::string> codes;
  };
  const std::vector<Row> rows = {
      {"nothing is", [](auto&, auto&, auto&) {}, {}},
      {"the tracker is gone",
       [](auto& store, auto&, auto&) { store.remove(kRoot + "/" + std::string(kTrackerFile)); },
       {"COMMIT_MISSING"}},
      {"the tracker names an older one",
       [](auto& store, auto&, auto&) { track(store, 2); },
       {"COMMIT_MISSING"}},
      {"the tracker names what is not there",
       [](auto& store, auto&, auto&) { track(store, 7); },
       {"COMMIT_MISSING", "TRACKER_DANGLING"}},
      {"the newest is damaged",
       [](auto& store, auto&, auto&) { sim::cut(store, kNewest + "/.metadata", 9); },
       {"TRACKER_DANGLING", "LAST_GOOD_DELETED"}},
      {"bits of the newest are others",
       [](auto& store, auto&, auto&) { spoil(store, kNewest); },
       {"TRACKER_DANGLING"}},
      {"the same, done on purpose",
       [](auto& store, auto&, auto& past) {
         spoil(store, kNewest);
         past.saves.back().damaged = true;
       },
       {}},
      {"an old one is gone",
       [](auto& store, auto&, auto&) { store.remove(kOldest); },
       {"LAST_GOOD_DELETED"}},
      {"an old one is gone, and two are kept",
       [](auto& store, auto& plan, auto&) {
         store.remove(kOldest);
         plan.keep = 2;
       },
       {}},
      {"all are there, and two are kept",
       [](auto&, auto& plan, auto&) { plan.keep = 2; },
       {"RETENTION_EXCEEDED"}},
      {"two are kept beside one that the last life passed over",
       [](auto& store, auto& plan, auto& past) {
         pass_over_second(past, Step{1});
         store.remove(kSecond);
         plan.keep = 2;
       },
       {}},
      {"two are kept, one of which was passed over",
       [](auto& store, auto& plan, auto& past) {
         pass_over_second(past, Step{1});
         store.remove(kOldest);
         plan.keep = 2;
       },
       {"LAST_GOOD_DELETED"}},
      {"the same, and no load had seen that it is damaged",
       [](auto& store, auto& plan, auto& past) {
         pass_over_second(past, Step{2});
         store.remove(kOldest);
         plan.keep = 2;
       },
       {}},
      {"two are kept, and one that was passed over stands beside them",
       [](auto&, auto& plan, auto& past) {
         pass_over_second(past, Step{1});
         plan.keep = 2;
       },
       {}},
      {"one is kept, and beside it one that was passed over",
       [](auto& store, auto& plan, auto& past) {
         pass_over_second(past, Step{1});
         store.remove(kOldest);
         plan.keep = 1;
       },
       {"RETENTION_EXCEEDED"}},
      {"what was passed over is gone, and it was the read that failed",
       [](auto& store, auto& plan, auto& past) {
         pass_over_second(past, Step{1});
         past.saves[1].damaged = false;
         store.remove(kSecond);
         plan.keep = 2;
       },
       {"LAST_GOOD_DELETED"}},
      {"the oldest was removed before the newest was damaged and passed over",
       [](auto& store, auto& plan, auto& past) {
         pass_over_newest(store, past);
         store.remove(kOldest);
         plan.keep = 2;
       },
       {}},
      {"the oldest is gone, and no earlier life was to remove it",
       [](auto& store, auto& plan, auto& past) {
         pass_over_newest(store, past);
         store.remove(kOldest);
         plan.keep = 3;
       },
       {"LAST_GOOD_DELETED"}},
      {"one is kept, and one that is newer than the tracker",
       [](auto& store, auto& plan, auto& past) {
         save_second_again(store, past);
         store.remove(kOldest);
         plan.keep = 1;
       },
       {}},
      {"what is newer than the tracker is gone",
       [](auto& store, auto& plan, auto& past) {
         save_second_again(store, past);
         store.remove(kNewest);
         plan.keep = 2;
       },
       {"LAST_GOOD_DELETED"}},
      {"what is newer than the tracker took the place of one that is kept",
       [](auto& store, auto& plan, auto& past) {
         save_second_again(store, past);
         store.remove(kOldest);
         plan.keep = 2;
       },
       {"LAST_GOOD_DELETED"}},
      {"the newest save did not end, and is not there",
       [](auto& store, auto&, auto& past) {
         past.saves.back().certain = false;
         store.remove(kNewest);
         track(store, 2);
       },
       {}},
      {"it did not end, but the tracker names it",
       [](auto&, auto&, auto& past) { past.saves.back().certain = false; },
       {}},
      {"payload that the metadata does not name stands in the newest",
       [](auto& store, auto&, auto&) {
         write_durably(store, kNewest + "/__7_0.distcp", as_bytes("of a larger world"));
       },
       {"MIXED_GENERATION"}},
      {"it stands in an old one",
       [](auto& store, auto&, auto&) {
         write_durably(store, kOldest + "/__7_0.distcp", as_bytes("of a larger world"));
       },
       {"MIXED_GENERATION"}},
      {"it is empty, as that of a rank with nothing to write",
       [](auto& store, auto&, auto&) { write_durably(store, kNewest + "/__7_0.distcp", {}); },
       {}},
      {"it stands in one that was damaged on purpose",
       [](auto& store, auto&, auto& past) {
         write_durably(store, kNewest + "/__7_0.distcp", as_bytes("of a larger world"));
         past.saves.back().damaged = true;
       },
       {}},
      {"another file stands beside the payload, of which nobody says that it is payload",
       [](auto& store, auto&, auto&) {
         write_durably(store, kNewest + "/notes.txt", as_bytes("of a user"));
       },
       {}},
      {"the newest lacks a tensor of the optimizer",
       [](auto& store, auto&, auto&) { forget_a_slot(store); },
       {"KEYSET_ASYMMETRY"}},
      {"nothing was ever saved", [](auto&, auto&, auto& past) { past.saves.clear(); }, {}},
      {"a rerun waits",
       [](auto& store, auto&, auto&) { put_rerun_state(store, sim::RerunState::kNotRunningYet); },
       {}},
      {"a rerun is under way",
       [](auto& store, auto&, auto&) {
         put_rerun_state(store, sim::RerunState::kRerunningInPlace);
       },
       {"ILLEGAL_STATE_PERSISTED"}},
  };
  const std::vector<Action> saves = {TrainAction{1}, SaveAction{},   TrainAction{1},
                                     SaveAction{},   TrainAction{1}, SaveAction{}};
  for (const auto& row : rows) {
    test::Rig rig(test::scenario_of({{"tp2", saves}, {"tp2", {}}}));
    auto life = rig.run(0);
    rig.end(0, life);
    EXPECT_TRUE(life.findings.empty()) << life.findings.front().text;
    CheckpointPlan plan;
    Past past = rig.past();
    row.change(rig.store(), plan, past);
    const Findings findings = judge_store(rig.judged(), plan, past);
    EXPECT_EQ(codes_of(findings), row.codes) << row.what;
  }
}

TEST(Past, a_save_is_certain_if_a_rank_saw_its_end_in_an_honest_store) {
  LifeRecord life;
  life.ranks.resize(2);
  for (auto& rank : life.ranks) {
    rank.saves.resize(1);
    rank.saves[0].point.step = Step{3};
    rank.saves[0].point.certain = false;
  }
  Past past;
  add_life(life, past);
  EXPECT_FALSE(past.saves.back().certain);
  life.ranks[1].saves[0].point.certain = true;
  add_life(life, past);
  EXPECT_TRUE(past.saves.back().certain);
  EXPECT_EQ(newest_certain(past.saves), 1);
  sim::FaultState lie;
  lie.spec.kind = sim::FaultKind::kLostSync;
  lie.fired = true;
  life.ranks[0].faults = {lie};
  add_life(life, past);
  EXPECT_FALSE(past.saves.back().certain);
  EXPECT_TRUE(past.tracker_damaged);
}

TEST(Past, an_interrupted_save_is_optional_and_an_older_one_a_fallback) {
  const auto point = [](std::int64_t step, bool certain) {
    SavePoint save;
    save.step = Step{step};
    save.certain = certain;
    return save;
  };
  const std::vector<SavePoint> saves = {point(1, true), point(2, true), point(3, false)};
  EXPECT_EQ(outcome_of(saves, Step{3}), Outcome::kContinued);
  EXPECT_EQ(outcome_of(saves, Step{2}), Outcome::kContinued);
  EXPECT_EQ(outcome_of(saves, Step{1}), Outcome::kFellBack);
  EXPECT_EQ(outcome_of(saves, Step{5}), std::nullopt);
}

TEST(Past, it_survives_its_file) {
  const Scenario scenario = test::scenario_of({{"tp2", {SaveAction{}}}, {"tp4", {}}});
  Past past;
  past.tracker_damaged = true;
  past.saves.push_back({.step = Step{3},
                        .life = 1,
                        .modules = modules_of(scenario, 1),
                        .parent_step = 2,
                        .ages = {{"", {4, 5}}, {"vision", {6, 7}}},
                        .certain = false,
                        .damaged = true,
                        .random = false,
                        .optimizer = false,
                        .release = true,
                        .turns = {{Step{1}, 0, false, true}, {Step{2}, 1}}});
  sim::FaultSpec bad;
  bad.kind = sim::FaultKind::kBadResult;
  bad.place.rank = GlobalRank{1};
  bad.result = {
      sim::ResultFault::kPersistentError, false, sim::BadValue::kInfinity, 1, 0, 7, "node3:1"};
  past.faults = {bad};
  const Past read = parse_past(to_json(past), scenario);
  EXPECT_EQ(read.saves, past.saves);
  EXPECT_TRUE(read.tracker_damaged);
  ASSERT_EQ(read.faults.size(), 1U);
  EXPECT_EQ(sim::to_string(read.faults[0]), sim::to_string(bad));
  EXPECT_EQ(read.faults[0].result.device, "node3:1");
  EXPECT_EQ(read.faults[0].result.iteration, 7);
  EXPECT_EQ(read.faults[0].result.value, sim::BadValue::kInfinity);
}

}  // namespace
}  // namespace reprise::driver
