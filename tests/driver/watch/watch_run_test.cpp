// Runs whole watches of a training command that records itself, healthy and with defects.
#include "driver/watch/watch_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "driver/lanes/process_table.hpp"
#include "driver/watch/watch_result.hpp"
#include "driver/yaml/text_file.hpp"
#include "reports/evidence.hpp"
#include "reprise/error.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::driver {
namespace {

namespace fs = std::filesystem;
using reports::Verdict;
using ::testing::HasSubstr;

const std::string kJob = std::string(REPRISE_TEST_DATA) + "/../driver/watch/fake_job.py";

/// The folder of a user, who has the job there.
class Desk {
 public:
  Desk() {
    fs::create_directories(user());
    fs::create_directories(root_ / "work");
    fs::copy_file(kJob, user() / "train.py");
  }

  fs::path user() const { return root_ / "user"; }
  fs::path root() const { return root_; }

  WatchRequest request(const std::vector<std::string>& arguments) const {
    WatchRequest request;
    request.command = {"python3", "train.py"};
    request.command.insert(request.command.end(), arguments.begin(), arguments.end());
    request.resume_words = {"--resume"};
    request.hook = root_.string();
    request.source.directory = user();
    request.folder = (root_ / "records").string();
    request.work = (root_ / "work").string();
    return request;
  }

 private:
  contracts::TemporaryDirectory directory_;
  fs::path root_ = fs::canonical(directory_.path());
};

WatchOutcome watch(const WatchRequest& request) {
  return run_watch(
      request, [](const WatchProgress&) {}, [] { return false; });
}

/// Returns each finding as "CODE: where on ranks: text".
std::vector<std::string> told(const WatchJudgement& judgement) {
  std::vector<std::string> told;
  for (const auto& finding : judgement.findings) {
    told.push_back(
        std::string(finding.severity == Severity::kNote ? "note" : name_of(finding.code)) + ": " +
        text_of(finding));
  }
  return told;
}

struct Defect {
  const char* name;
  int ranks;
  Verdict verdict;
  const char* says;  ///< part of one finding
};

std::ostream& operator<<(std::ostream& out, const Defect& defect) { return out << defect.name; }

class WatchDefects : public testing::TestWithParam<Defect> {};

TEST_P(WatchDefects, are_found_and_named) {
  const Defect& defect = GetParam();
  const Desk desk;
  const WatchOutcome outcome =
      watch(desk.request({"--ranks", std::to_string(defect.ranks), "--defect", defect.name}));
  const auto findings = told(outcome.judgement);
  EXPECT_EQ(name_of(outcome.judgement.verdict), name_of(defect.verdict))
      << testing::PrintToString(findings);
  if (*defect.says == '\0') {
    EXPECT_THAT(findings, testing::IsEmpty());
  } else {
    EXPECT_THAT(findings, testing::Contains(HasSubstr(defect.says)));
  }
  const auto result = watch_result(outcome.lives, outcome.judgement);
  EXPECT_EQ(result.code.empty(), defect.verdict == Verdict::kPass);
  EXPECT_EQ(fs::exists(desk.user() / "ckpt"), false)
      << "nothing was written into the user's folder";
  EXPECT_TRUE(fs::is_empty(desk.root() / "work")) << "the copies were removed";
}

INSTANTIATE_TEST_SUITE_P(
    Table, WatchDefects,
    testing::Values(
        Defect{"none", 1, Verdict::kPass, ""}, Defect{"none", 2, Verdict::kPass, ""},
        Defect{"a clock", 1, Verdict::kPass, ""},
        Defect{"random state not saved, no effect", 1, Verdict::kPass,
               "note: rng.python on rank 0: as in a new process: no effect"},
        Defect{"random state not restored, no effect", 1, Verdict::kFail,
               "LOST_OBJECT: rng.python on rank 0: as in a new process"},
        Defect{"random state not restored", 2, Verdict::kFail,
               "LOST_OBJECT: rng.python on ranks 0, 1: as in a new process"},
        Defect{"the random state of rank 0", 2, Verdict::kFail,
               "WRONG_OWNER: rng.python on rank 1: that of rank 0"},
        Defect{"the optimizer is lost", 1, Verdict::kFail,
               "LOST_OBJECT: optim.severity.momentum on rank 0: as in a new process"},
        Defect{"rank 1 is stale", 2, Verdict::kFail,
               "STALE_BYTES: optim.severity.momentum on rank 1: as after step 6"},
        Defect{"the average is lost", 1, Verdict::kFail,
               "LOST_OBJECT: ema.shadow on rank 0: as in a new process"},
        Defect{"a buffer is lost", 1, Verdict::kFail,
               "LOST_OBJECT: buffer.mean on rank 0: as in a new process"},
        Defect{"a count that nobody saves", 1, Verdict::kFail,
               "LOST_OBJECT: buffer-not-saved.count on rank 0: as in a new process"},
        Defect{"a table that grows with the longest batch", 1, Verdict::kPass, ""},
        Defect{"a table that the first forward fills", 1, Verdict::kPass,
               "note: buffer-not-saved.table on rank 0: as in a new process: no effect"},
        Defect{"a buffer of rank 0 for all", 2, Verdict::kPass,
               "note: buffer.mean on rank 1: that of rank 0: no effect in the steps compared"},
        Defect{"weights are rounded", 1, Verdict::kFail,
               "BIT_MISMATCH: param.severity on rank 0: with other content"},
        Defect{"an older checkpoint", 1, Verdict::kFail,
               "STALE_BYTES: step 6: continues from it, though what was saved after step 9 is"},
        Defect{
            "an object is not stored", 2, Verdict::kFail,
            "LOST_OBJECT: best on ranks 0, 1: handed to the save after step 6, which is complete"},
        Defect{"a count begins anew", 1, Verdict::kFail,
               "CONTENT_DIFFERS: count on rank 0: saved with other content after step 12"},
        Defect{
            "a best file is saved anew", 1, Verdict::kFail,
            "CONTENT_DIFFERS: ./ckpt/best on rank 0: saved after step 10, where life A saves none"},
        Defect{"a generator is not restored", 1, Verdict::kPass,
               "note: gen.own on rank 0: as in a new process: no effect in the steps compared"},
        Defect{"a generator is not restored, though it was saved", 1, Verdict::kFail,
               "LOST_OBJECT: gen.own on rank 0: as in a new process"},
        Defect{"data again", 1, Verdict::kFail,
               "DATA_STREAM_SKIP: step 10 on rank 0: takes the data of step 1 again"},
        Defect{"data differ late", 1, Verdict::kFail,
               "DATA_STREAM_SKIP: step 11 on rank 0: takes data that the uninterrupted run never"},
        Defect{"runs differ late", 1, Verdict::kInconclusive,
               "NOT_DETERMINISTIC: the data of step 11 on rank 0: two runs of the same steps"},
        Defect{"unseeded weights", 1, Verdict::kInconclusive,
               "NOT_DETERMINISTIC: param.severity after step 0"},
        Defect{"unseeded data", 1, Verdict::kInconclusive, "NOT_DETERMINISTIC: the data of step 1"},
        Defect{"makes too many steps", 1, Verdict::kFail,
               "SCHEDULE_DRIFT: steps on rank 0: makes 5 steps, not the 3 that are left of 12"},
        Defect{"sums in another order", 1, Verdict::kInconclusive,
               "NOT_DETERMINISTIC: step 11 on rank 0: all that was compared came back"},
        Defect{"the model is in eval mode", 1, Verdict::kInconclusive,
               "ORACLE_VACUOUS: judged: too little was seen to judge: no data (no forward of a "
               "module in training mode was seen; a model after model.eval() is none)"},
        Defect{"another loss, unseen", 1, Verdict::kFail,
               "TRAJECTORY_DIVERGENCE: step 11 on rank 0: loss "},
        Defect{"starts anew", 1, Verdict::kFail,
               "LOST_OBJECT: everything: as in a new process: nothing that was saved was loaded"},
        Defect{"the load fails", 1, Verdict::kFail,
               "LOST_OBJECT: life C on rank 0: could not load ./ckpt/step9-rank0.json: OSError"},
        Defect{
            "the saved file is not there", 1, Verdict::kFail,
            "LOST_OBJECT: life C on rank 0: could not load ./ckpt/step9-rank0.json: FileNotFound"},
        Defect{"another file is not there", 1, Verdict::kInconclusive,
               "ORACLE_VACUOUS: life C: could not load ./other.json: FileNotFoundError: "
               "other.json. Is"},
        Defect{"weights that no module has", 1, Verdict::kPass, ""},
        Defect{"crashes later", 1, Verdict::kFail,
               "TRAJECTORY_DIVERGENCE: life C on rank 0: ended after 0 steps; ValueError: shape"},
        Defect{"is not killed", 1, Verdict::kInconclusive,
               "ORACLE_VACUOUS: life B: was not killed: it made 12 steps"},
        Defect{"wants no resume", 1, Verdict::kInconclusive,
               "ORACLE_VACUOUS: life C: recorded no training step; it ended with exit code 2"},
        Defect{"prints, and trains nothing", 1, Verdict::kInconclusive,
               "ORACLE_VACUOUS: life A: recorded no training step; it ended with exit code 0"}));

TEST(WatchRun, what_follows_from_a_defect_is_one_line) {
  const Desk desk;
  WatchRequest request = desk.request({"--defect", "the optimizer is lost"});
  request.kill = 4;
  const auto found = told(watch(request).judgement);
  EXPECT_THAT(found, testing::ElementsAre(
                         "LOST_OBJECT: optim.severity.momentum on rank 0: as in a new process",
                         "note: later saves on rank 0: differ, too: 2 names, after steps 6, 9, 12",
                         "note: loader.position on rank 0: as in a new process"));
}

TEST(WatchRun, a_save_killed_before_its_rename_need_not_be_resumed_from) {
  for (const auto& [kill, from, verdict] :
       {std::tuple{6, 3, Verdict::kPass}, std::tuple{3, 0, Verdict::kInconclusive}}) {
    const Desk desk;
    WatchRequest request = desk.request({"--defect", "renames what it saved"});
    request.kill = kill;
    request.kill_moment = KillMoment::kSaveWritten;
    const auto judgement = watch(request).judgement;
    EXPECT_EQ(name_of(judgement.verdict), name_of(verdict))
        << testing::PrintToString(told(judgement));
    EXPECT_EQ(judgement.continues_from, from);
  }
}

TEST(WatchRun, kills_nothing_within_an_asynchronous_save_if_there_is_none) {
  const Desk desk;
  WatchRequest request = desk.request({});
  request.kill = 6;
  request.kill_moment = KillMoment::kAsynchronous;
  const WatchOutcome outcome = watch(request);
  EXPECT_THAT(outcome.lives.resumed, testing::IsEmpty());
  const auto found = told(outcome.judgement);
  EXPECT_THAT(found, testing::ElementsAre(HasSubstr("life A made no asynchronous save")));
  EXPECT_EQ(told(judge_watch(read_lives(request.folder))), found);
}

TEST(WatchRun, what_another_thread_saved_may_be_of_an_earlier_step) {
  const Desk desk;
  const auto judgement =
      watch(desk.request({"--defect", "a thread saves the step before", "--save-every", "1"}))
          .judgement;
  EXPECT_EQ(name_of(judgement.verdict), "pass") << testing::PrintToString(told(judgement));
}

TEST(WatchRun, kills_after_the_newest_save_that_leaves_steps_to_compare) {
  const Desk desk;
  const WatchOutcome outcome = watch(desk.request({}));
  EXPECT_EQ(outcome.lives.kill, 10);
  EXPECT_EQ(outcome.judgement.continues_from, 9);
  EXPECT_EQ(outcome.judgement.newest_save, 9);
  EXPECT_EQ(outcome.judgement.counts.data_steps, (std::set<std::int64_t>{10, 11, 12}));
  EXPECT_EQ(outcome.judgement.counts.loss_steps, (std::set<std::int64_t>{10, 11, 12}));
  EXPECT_EQ(outcome.judgement.counts.random_states, (std::set<std::string>{"rng.python"}));
}

TEST(WatchRun, a_kill_in_a_save_leaves_the_one_before_it) {
  for (const auto moment : {KillMoment::kSaveBegins, KillMoment::kSaveWritten}) {
    const Desk desk;
    WatchRequest request = desk.request({});
    request.kill_moment = moment;
    const WatchOutcome outcome = watch(request);
    EXPECT_EQ(outcome.judgement.verdict, Verdict::kPass);
    EXPECT_EQ(outcome.lives.kill, 9);
    EXPECT_EQ(outcome.judgement.continues_from, moment == KillMoment::kSaveBegins ? 6 : 9);
  }
}

TEST(WatchRun, a_kill_before_the_first_save_shows_nothing) {
  const Desk desk;
  WatchRequest request = desk.request({});
  request.kill = 2;
  const WatchJudgement judgement = watch(request).judgement;
  EXPECT_EQ(judgement.verdict, Verdict::kInconclusive);
  EXPECT_THAT(told(judgement),
              testing::ElementsAre(HasSubstr("nothing was saved completely before the kill")));
}

TEST(WatchRun, an_older_save_may_be_chosen_by_name) {
  const Desk desk;
  WatchRequest request = desk.request({});
  request.resume_words = {"--resume", "step6-"};
  const WatchJudgement judgement = watch(request).judgement;
  EXPECT_EQ(judgement.continues_from, 6);
  EXPECT_EQ(judgement.verdict, Verdict::kPass);
  EXPECT_THAT(told(judgement), testing::Contains(HasSubstr("as --resume-args says")));
}

TEST(WatchRun, a_planned_end_is_no_failure_if_the_resumed_life_ends_so_too) {
  const Desk desk;
  const WatchJudgement judgement = watch(desk.request({"--exit", "16"})).judgement;
  EXPECT_EQ(judgement.verdict, Verdict::kPass) << testing::PrintToString(told(judgement));
  EXPECT_TRUE(judgement.not_judged.contains("what follows exit code 16"));
  const Desk other;
  const WatchJudgement plain = watch(other.request({"--exit", "15"})).judgement;
  EXPECT_EQ(plain.verdict, Verdict::kInconclusive);
}

TEST(WatchRun, records_of_different_digests_are_not_compared) {
  const Desk desk;
  watch(desk.request({}));
  const fs::path records = desk.root() / "records";
  for (const auto& entry : fs::directory_iterator(records / "C")) {
    std::string text = text_of(entry.path());
    text.replace(text.find("\"pid\""), 0, "\"digest\": \"other\", ");
    std::ofstream(entry.path()) << text;
  }
  EXPECT_THAT(told(judge_watch(read_lives(records.string()))),
              testing::ElementsAre(HasSubstr("life C: has digests by other, life A by ")));
}

TEST(WatchRun, says_so_if_life_a_saves_only_at_its_end) {
  const Desk desk;
  const auto found = told(watch(desk.request({"--save-every", "12"})).judgement);
  EXPECT_THAT(found, testing::ElementsAre(HasSubstr("saves only after its last step, 12")));
}

TEST(WatchRun, a_pass_is_one_that_the_gate_accepts) {
  const Desk desk;
  const WatchOutcome outcome = watch(desk.request({"--ranks", "2"}));
  reports::Report report{.lane = reports::ReportLane::kWatch, .seconds = 100};
  report.scenarios = {watch_result(outcome.lives, outcome.judgement)};
  report.scenarios[0].name = "watch/train";
  report.planned = 1;
  report.verdict = reports::overall(report);
  const auto refusals = reports::check_evidence(report);
  for (const auto& refusal : refusals) ADD_FAILURE() << refusal.subject << ": " << refusal.reason;
  report.scenarios[0].ranks[1].bit_mismatches = 1;
  EXPECT_FALSE(reports::check_evidence(report).empty());
}

TEST(WatchRun, more_lives_are_killed_and_resumed_in_turn) {
  const Desk desk;
  WatchRequest request = desk.request({});
  request.kill = 4;
  request.lives = 4;
  const WatchOutcome good = watch(request);
  EXPECT_EQ(good.judgement.verdict, Verdict::kPass) << testing::PrintToString(told(good.judgement));
  EXPECT_EQ(good.lives.resumed.size(), 3U);
  EXPECT_EQ(good.judgement.continues_from, 6) << "killed after 4 steps, then after steps 4 to 7";

  const Desk other;
  WatchRequest bad = other.request({"--defect", "the average is lost"});
  bad.kill = 4;
  bad.lives = 4;
  EXPECT_EQ(watch(bad).judgement.verdict, Verdict::kFail);

  const Desk third;
  WatchRequest filled = third.request({"--defect", "a table that the first forward fills"});
  filled.kill = 4;
  filled.lives = 4;
  EXPECT_EQ(watch(filled).judgement.verdict, Verdict::kPass) << "a killed life has no end";
}

TEST(WatchRun, records_are_judged_elsewhere_as_they_were_here) {
  for (const char* defect : {"none", "data again", "wants no resume"}) {
    const Desk desk;
    const WatchOutcome here = watch(desk.request({"--defect", defect}));
    const WatchJudgement there = judge_watch(read_lives((desk.root() / "records").string()));
    EXPECT_EQ(there.verdict, here.judgement.verdict) << defect;
    EXPECT_EQ(told(there), told(here.judgement)) << defect;
  }
}

TEST(WatchRun, records_without_the_driver_say_by_themselves_how_lives_ended) {
  const Desk desk;
  watch(desk.request({}));
  fs::remove(desk.root() / "records" / "watch.json");
  const std::string records = (desk.root() / "records").string();
  EXPECT_EQ(judge_watch(read_lives(records)).verdict, Verdict::kPass);
  fs::remove_all(desk.root() / "records" / "C");
  EXPECT_EQ(judge_watch(read_lives(records)).verdict, Verdict::kInconclusive);
  fs::remove_all(desk.root() / "records" / "A");
  EXPECT_THROW(read_lives(records), Error);
}

TEST(WatchRun, a_rank_that_recorded_nothing_makes_it_inconclusive) {
  const Desk desk;
  watch(desk.request({"--ranks", "2"}));
  const fs::path records = desk.root() / "records";
  for (const auto& entry : fs::directory_iterator(records / "C")) {
    if (entry.path().filename().string().starts_with("rank-1-")) fs::remove(entry.path());
  }
  const WatchJudgement judgement = judge_watch(read_lives(records.string()));
  EXPECT_EQ(judgement.verdict, Verdict::kInconclusive);
  EXPECT_THAT(told(judgement),
              testing::ElementsAre(HasSubstr("life C: has records of 1 rank, life A of 2")));
}

TEST(WatchRun, a_silent_life_is_ended) {
  const Desk desk;
  WatchRequest request = desk.request({});
  request.command = {"sh", "-c", "echo begins; setsid sleep 300 & exec sleep 300"};
  request.silence_s_max = 1;
  const WatchOutcome outcome = watch(request);
  EXPECT_EQ(outcome.judgement.verdict, Verdict::kInconclusive);
  EXPECT_THAT(
      told(outcome.judgement),
      testing::ElementsAre(HasSubstr("HANG: life A: it was ended after 1 s without record")));
  EXPECT_EQ(outcome.judgement.findings[0].log, "begins");
  EXPECT_THAT(started_with(desk.root().string()), testing::IsEmpty());
}

TEST(WatchRun, a_save_outside_the_working_directory_is_told) {
  const Desk desk;
  const std::string out = (desk.root() / "elsewhere").string();
  const auto found = told(watch(desk.request({"--out", out})).judgement);
  EXPECT_THAT(found, testing::ElementsAre(HasSubstr("life A: saves to " + out)));
  const Desk other;
  const auto inside = watch(other.request({"--out", "{work}/out"})).judgement;
  EXPECT_EQ(inside.verdict, Verdict::kPass) << testing::PrintToString(told(inside));
}

}  // namespace
}  // namespace reprise::driver
