// Tests the verdicts on planned ends of a life, on faults, and on what a scenario expects. The
// records are handwritten; no job runs.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/base/codes.hpp"
#include "driver/judges/verdict.hpp"
#include "properties/finding_code.hpp"
#include "tests/driver/small_scenario.hpp"

namespace reprise::driver {
namespace {

using reports::Verdict;
using test::scenario_of;

/// Two lives of two ranks. In the first life rank 1 dies in its second save, as planned.
struct Case {
  Scenario scenario;
  std::vector<LifeRecord> lives;

  FaultAction& fault() { return std::get<FaultAction>(scenario.lives[0].actions[2]); }
  RankRecord& dead() { return lives[0].ranks[1]; }
  RankRecord& survivor() { return lives[0].ranks[0]; }
};

RankRecord good_rank(std::int32_t rank) {
  RankRecord record;
  record.ending = Ending::kReturned;
  record.result.rank = rank;
  record.result.loaded_step = 1;
  record.result.elements = 8;
  record.result.compared = 1;
  return record;
}

Case good_case() {
  FaultAction crash;
  crash.rank = 1;
  crash.phase = "commit";
  Case one{scenario_of({{"tp2", {TrainAction{1}, SaveAction{}, crash, SaveAction{}}},
                        {"tp2", {TrainAction{1}}}}),
           {}};
  for (int life = 0; life < 2; ++life) {
    LifeRecord record;
    record.layout = "tp2";
    record.ranks = {good_rank(0), good_rank(1)};
    one.lives.push_back(record);
  }
  sim::FaultState state;
  state.spec.place.rank = GlobalRank{1};
  state.spec.place.phase = "commit";
  state.armed = state.reached = state.fired = true;
  one.dead().faults = {state};
  one.dead().ending = Ending::kLost;
  one.dead().code = Code::kPeerFailed;
  one.dead().message = "it was killed";
  one.survivor().ending = Ending::kFailed;
  one.survivor().code = Code::kPeerFailed;
  one.survivor().message = "PEER_FAILED: it died [rank 1]";
  return one;
}

TEST(Verdict, a_step_out_of_order_is_the_cause_and_its_harm_a_consequence) {
  Case one = good_case();
  one.survivor().findings = {{.code = judged::kProtocol, .text = "rank 0: a step out of order"}};
  one.lives[0].findings = {
      {.code = Code::kTrackerDangling, .text = "no such step", .phase = "store"}};
  one.lives[1].ranks[1].findings = {{.code = judged::kBitMismatch, .text = "an element differs"}};
  const auto result = judge(one.scenario, one.lives);
  EXPECT_EQ(result.code, "PROTOCOL");
  EXPECT_NE(result.reason.find("also BIT_MISMATCH x 1, TRACKER_DANGLING x 1"), std::string::npos)
      << result.reason;
  ASSERT_EQ(result.failure->consequences.size(), 3U);
  EXPECT_EQ(result.failure->consequences[1].code, "TRACKER_DANGLING");
  EXPECT_EQ(result.failure->consequences[2].code, "BIT_MISMATCH");
}

TEST(Verdict, what_a_planned_fault_leaves) {
  struct Row {
    std::string what;
    std::function<void(Case&)> change;
    Verdict verdict;
    std::string says;
    bool goes_on;
  };
  const std::vector<Row> rows = {
      {"one dies as planned, and the other says so", [](Case&) {}, Verdict::kPass, "", true},
      {"the other did not notice", [](Case& c) { c.survivor().ending = Ending::kReturned; },
       Verdict::kPass, "", true},
      {"the other waits for ever",
       [](Case& c) {
         c.survivor().ending = Ending::kHung;
         c.survivor().code = passed_on::kHang;
       },
       Verdict::kFail, "HANG", false},
      {"the other breaks a check of ours",
       [](Case& c) {
         c.survivor().ending = Ending::kDefect;
         c.survivor().code = Code::kInternal;
       },
       Verdict::kFail, "INTERNAL", false},
      {"the other dies, too, and nobody planned it",
       [](Case& c) { c.survivor().ending = Ending::kLost; }, Verdict::kFail, "PEER_FAILED", false},
      {"the other ends by what no death explains",
       [](Case& c) { c.survivor().code = Code::kChecksum; }, Verdict::kFail, "CHECKSUM", false},
      {"the other ends by a fault that was planned, too",
       [](Case& c) {
         c.survivor().code = Code::kNoSpace;
         c.survivor().faults = c.dead().faults;
         c.survivor().faults[0].spec.kind = sim::FaultKind::kNoSpace;
       },
       Verdict::kPass, "", true},
      {"no rank knows of the fault, though it may stay away",
       [](Case& c) {
         c.fault().fires = Fires::kMaybe;
         c.dead() = good_rank(1), c.survivor() = good_rank(0);
       },
       Verdict::kInconclusive, "no rank reports it as armed", true},
      {"the rank that it was planned for left no record",
       [](Case& c) {
         c.survivor() = good_rank(0);
         c.lives[0].ranks.pop_back();
       },
       Verdict::kInconclusive, "no rank reports it", true},
      {"it was armed and never fired",
       [](Case& c) {
         const auto faults = c.dead().faults;
         c.dead() = good_rank(1);
         c.survivor() = good_rank(0);
         c.dead().faults = faults;
         c.dead().faults[0].fired = c.dead().faults[0].reached = false;
       },
       Verdict::kInconclusive, "never fired; it was armed", true},
      {"the same where it was not to fire",
       [](Case& c) {
         c.fault().fires = Fires::kNo;
         c.survivor() = good_rank(0);
         c.dead().ending = Ending::kReturned;
         c.dead().result.elements = 8;
         c.dead().faults[0].fired = false;
       },
       Verdict::kPass, "", true},
      {"it fired and was not to", [](Case& c) { c.fault().fires = Fires::kNo; }, Verdict::kFail,
       "should not have fired, but it did", true},
      {"it may", [](Case& c) { c.fault().fires = Fires::kMaybe; }, Verdict::kPass, "", true},
      {"a rank died of nothing that was planned", [](Case& c) { c.dead().faults[0].fired = false; },
       Verdict::kFail, "PEER_FAILED", false},
  };
  for (const auto& row : rows) {
    Case one = good_case();
    row.change(one);
    const auto result = judge(one.scenario, one.lives);
    EXPECT_EQ(result.verdict, row.verdict) << row.what << ": " << result.code << result.reason;
    EXPECT_NE((result.code + result.reason).find(row.says), std::string::npos)
        << row.what << ": " << result.code << ": " << result.reason;
    EXPECT_EQ(may_go_on(one.scenario, 0, one.lives[0]), row.goes_on) << row.what;
  }
}

TEST(Verdict, a_rank_that_fails_its_peers_ends_the_life_by_a_named_error) {
  struct Row {
    std::string what;
    std::function<void(Case&)> change;
    Verdict verdict;
    std::string says;
  };
  const auto by = [](sim::FaultKind kind, std::uint64_t delay_s) {
    return [kind, delay_s](Case& c) {
      c.dead().faults[0].spec.kind = kind;
      c.dead().faults[0].spec.delay_ns = delay_s * 1'000'000'000;
      for (auto& rank : c.lives[0].ranks) {
        rank.ending = Ending::kFailed;
        rank.code = kind == sim::FaultKind::kLate ? Code::kDeadline : Code::kPeerFailed;
        rank.message = name_of(*rank.code);
      }
    };
  };
  const auto fails = by(sim::FaultKind::kFails, 0);
  const std::vector<Row> rows = {
      {"its call fails", fails, Verdict::kPass, ""},
      {"it never did", [&](Case& c) { fails(c), c.dead().faults[0].fired = false; }, Verdict::kFail,
       "PEER_FAILED"},
      {"it comes when the deadline is over", by(sim::FaultKind::kLate, 61), Verdict::kPass, ""},
      {"it comes when the deadline is over, and another ends by no timeout",
       [&](Case& c) { by(sim::FaultKind::kLate, 61)(c), c.survivor().code = Code::kPeerFailed; },
       Verdict::kFail, "PEER_FAILED"},
      {"it comes when the deadline is over, and finds that the others have ended",
       [&](Case& c) { by(sim::FaultKind::kLate, 61)(c), c.dead().code = Code::kPeerFailed; },
       Verdict::kPass, ""},
      {"it comes in time", by(sim::FaultKind::kLate, 59), Verdict::kFail, "DEADLINE"},
      {"another goes on", [&](Case& c) { fails(c), c.survivor() = good_rank(0); }, Verdict::kFail,
       "it continued"},
      {"another ends by something else",
       [&](Case& c) { fails(c), c.survivor().code = Code::kIo, c.survivor().message = "IO"; },
       Verdict::kFail, "IO"},
      {"another waits for ever", [&](Case& c) { fails(c), c.survivor().ending = Ending::kHung; },
       Verdict::kFail, "PEER_FAILED"},
      {"it dies", [&](Case& c) { fails(c), c.dead().ending = Ending::kLost; }, Verdict::kFail,
       "PEER_FAILED"},
  };
  for (const auto& row : rows) {
    Case one = good_case();
    row.change(one);
    const auto result = judge(one.scenario, one.lives);
    EXPECT_EQ(result.verdict, row.verdict) << row.what << ": " << result.code << result.reason;
    EXPECT_NE((result.code + result.reason).find(row.says), std::string::npos)
        << row.what << ": " << result.code << ": " << result.reason;
  }
}

TEST(Verdict, a_life_that_is_cut_short_is_held_to_what_it_loaded) {
  for (const bool loaded : {false, true}) {
    for (const std::uint64_t elements : {0U, 8U}) {
      Case one = good_case();
      std::swap(one.lives[0], one.lives[1]);
      std::swap(one.scenario.lives[0].actions, one.scenario.lives[1].actions);
      one.lives.push_back(one.lives[0]);
      one.scenario.lives.push_back(one.scenario.lives[0]);
      for (auto& rank : one.lives[1].ranks) {
        rank.result.elements = elements;
        if (loaded) rank.loads = {{.step = 1, .requested = {"w"}, .stored = {"w"}}};
      }
      const auto verdict = judge(one.scenario, one.lives).verdict;
      EXPECT_EQ(verdict, loaded && elements == 0 ? Verdict::kInconclusive : Verdict::kPass);
    }
  }
}

TEST(Verdict, a_load_may_be_refused_where_the_scenario_leaves_that_open) {
  Case one = good_case();
  for (auto& rank : one.lives[1].ranks) {
    rank.ending = Ending::kFailed;
    rank.code = Code::kChecksum;
    rank.message = "CHECKSUM: wrong";
  }
  EXPECT_EQ(judge(one.scenario, one.lives).code, "CHECKSUM");
  one.scenario.expect.outcomes = {Outcome::kContinued, Outcome::kRefused};
  EXPECT_EQ(judge(one.scenario, one.lives).verdict, Verdict::kPass)
      << judge(one.scenario, one.lives).reason;
  one.lives[1].ranks[1].code = Code::kIo;
  EXPECT_EQ(judge(one.scenario, one.lives).verdict, Verdict::kFail)
      << "the ranks have different errors";
}

TEST(Verdict, a_refusal_must_say_what_is_expected) {
  Case one = good_case();
  one.scenario.expect.refusal = Code::kChecksum;
  for (auto& rank : one.lives[1].ranks) {
    rank.ending = Ending::kFailed;
    rank.code = Code::kChecksum;
    rank.message = "CHECKSUM: the payload is wrong";
  }
  one.scenario.expect.refusal_says = "payload";
  EXPECT_EQ(judge(one.scenario, one.lives).verdict, Verdict::kPass);
  one.scenario.expect.refusal_says = "metadata";
  const auto result = judge(one.scenario, one.lives);
  EXPECT_EQ(result.code, "VERDICT_DISAGREEMENT");
  EXPECT_NE(result.reason.find("should have refused with CHECKSUM saying 'metadata' but said"),
            std::string::npos)
      << result.reason;
}

TEST(Verdict, what_is_expected_is_held_against_what_is) {
  struct Row {
    std::string what;
    std::function<void(Expectation&)> expect;
    bool holds;
  };
  const std::vector<Row> rows = {
      {"the loaded step", [](Expectation& e) { e.loaded_step = 1; }, true},
      {"another loaded step", [](Expectation& e) { e.loaded_step = 2; }, false},
      {"the diagnosis", [](Expectation& e) { e.diagnosis = sim::RerunDiagnosis::kPersistentError; },
       true},
      {"another diagnosis",
       [](Expectation& e) { e.diagnosis = sim::RerunDiagnosis::kTransientError; }, false},
      {"no diagnosis", [](Expectation& e) { e.diagnosis = sim::RerunDiagnosis::kNone; }, false},
      {"replans", [](Expectation& e) { e.replans = 3; }, true},
      {"fewer", [](Expectation& e) { e.replans = 2; }, false},
      {"skipped", [](Expectation& e) { e.skipped = {2}; }, true},
      {"nothing skipped", [](Expectation& e) { e.skipped.emplace(); }, false},
      {"the log",
       [](Expectation& e) {
         e.log = {"vanished", "key w"};
       },
       true},
      {"silence", [](Expectation& e) { e.silent = {"key v"}; }, true},
      {"silence about what a log says", [](Expectation& e) { e.silent = {"key w"}; }, false},
      {"one rank that holds nothing", [](Expectation& e) { e.empty_ranks = 1; }, true},
      {"no such rank", [](Expectation& e) { e.empty_ranks = 0; }, false},
      {"what no log says",
       [](Expectation& e) {
         e.log = {"vanished", "key v"};
       },
       false},
  };
  for (const auto& row : rows) {
    Case one = good_case();
    one.lives[0].ranks[1].replans = 2;
    one.lives[1].ranks[0].replans = 1;
    one.lives[1].ranks[1].diagnosis = sim::RerunDiagnosis::kPersistentError;
    one.lives[0].ranks[1].diagnosis = sim::RerunDiagnosis::kTransientError;
    one.lives[1].ranks[0].skipped = {2};
    one.lives[0].ranks[0].log = {"key w vanished"};
    one.lives[1].ranks[1].bound_bytes.empty = 1;
    row.expect(one.scenario.expect);
    const auto result = judge(one.scenario, one.lives);
    EXPECT_EQ(result.verdict == Verdict::kPass, row.holds) << row.what << ": " << result.reason;
    EXPECT_EQ(result.replans, 3U);
    EXPECT_EQ(result.diagnosis, "persistent_error");
  }
}

TEST(Verdict, the_exit_code_of_a_life_is_the_jobs_own) {
  Case one = good_case();
  for (auto& rank : one.lives[1].ranks) rank.exit_code = 17;
  const auto result = judge(one.scenario, one.lives);
  EXPECT_EQ(result.lives[0].exit_code, 1);
  EXPECT_EQ(result.lives[1].exit_code, 17);
}

TEST(Verdict, what_is_left_in_the_store_counts) {
  Case one = good_case();
  one.lives[0].findings = {{.code = Code::kTrackerDangling, .text = "it does not exist"}};
  EXPECT_EQ(judge(one.scenario, one.lives).code, "TRACKER_DANGLING");
}

TEST(Verdict, among_findings_equally_near_the_cause_the_earliest_is_told) {
  Case one = good_case();
  const auto found = [](std::int64_t step) {
    return Finding{
        .code = judged::kBitMismatch, .text = "at step " + std::to_string(step), .step = step};
  };
  one.lives[1].ranks[0].findings = {found(3)};
  one.lives[1].ranks[1].findings = {found(1), found(2)};
  EXPECT_EQ(judge(one.scenario, one.lives).reason.substr(0, 17), "rank 1: at step 1")
      << judge(one.scenario, one.lives).reason;
}

TEST(Verdict, ranks_resuming_from_different_checkpoints_are_the_cause) {
  Case one = good_case();
  for (auto& rank : one.lives[1].ranks) {
    rank.findings = {{.code = judged::kStaleBytes, .text = "an old one was loaded"}};
    rank.loads = {{.step = rank.result.rank + 1, .requested = {"w"}, .stored = {"w"}}};
  }
  EXPECT_EQ(judge(one.scenario, one.lives).code, "MIXED_GENERATION");
}

/// Returns a case with one life for each exit code. All lives load step 1, which the first life
/// saved. With the exit code 16, that checkpoint is a fault checkpoint.
Case fault_case(const std::vector<int>& exit_codes) {
  Case one{scenario_of({}), {}};
  for (const int code : exit_codes) {
    one.scenario.lives.push_back(good_case().scenario.lives[1]);
    LifeRecord life;
    life.layout = "tp2";
    life.ranks = {good_rank(0), good_rank(1)};
    for (auto& rank : life.ranks) rank.exit_code = code;
    one.lives.push_back(life);
  }
  SaveEvidence save;
  save.point.step = Step{1};
  for (auto& rank : one.lives[0].ranks) rank.saves = {save};
  return one;
}

TEST(Verdict, restarts_that_go_round_and_nobody_is_told) {
  const std::string told = "iteration 2 was run again from this checkpoint 1 time before";
  const auto code_of = [](const Case& one) { return judge(one.scenario, one.lives).code; };
  EXPECT_EQ(code_of(fault_case({16, 17, 0})), "");
  EXPECT_EQ(code_of(fault_case({16, 17, 17})), "RESTART_LOOP");
  EXPECT_EQ(code_of(fault_case({16, 16, 17, 0})), "");
  EXPECT_EQ(code_of(fault_case({0, 17, 17})), "") << "no fault checkpoint";
  Case one = fault_case({16, 17, 17, 17});
  one.lives[2].ranks[1].log = {told};
  EXPECT_EQ(code_of(one), "RESTART_LOOP") << "it must hold in every life";
  one.lives[3].ranks[1].log = {told};
  EXPECT_EQ(code_of(one), "");
  one = fault_case({16, 17, 17});
  for (auto& rank : one.lives[2].ranks) rank.result.loaded_step = 4;
  EXPECT_EQ(code_of(one), "") << "it continues from another checkpoint";
}

}  // namespace
}  // namespace reprise::driver
