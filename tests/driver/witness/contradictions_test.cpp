// Witness files that lack something, or contradict themselves, in both runs or in one. None of them
// may pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/driver/witness/recorded_life.hpp"

namespace reprise::driver {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Returns the files of all runs.
std::vector<std::vector<std::string>*> all(RecordedRun& run) {
  return {&run.files.first, &run.files.second, &run.files.control};
}

/// Removes a tensor from the state at the end, on all ranks; all tensors if no key is given.
void lose_at_end(std::vector<std::string>& files, const std::string& key) {
  for (auto& text : files) {
    const auto end = text.find(R"("when":"end")");
    const auto from = text.find(R"({"key":")" + key, end);
    const auto to = text.find(key == "w" ? R"({"key":"b")" : R"(],"objects")", from);
    text.erase(from, to - from);
    if (key != "w") text.erase(text.rfind(',', from), 1);
  }
}

TEST(Contradictions, FindsATensorThatTheEndLacks) {
  RecordedRun run;
  lose_at_end(run.files.second, "b");
  EXPECT_THAT(run.first(), StartsWith("LOST_OBJECT: life 1, at the end: b is held by no rank, but "
                                      "the uninterrupted run holds it"));
  RecordedRun other;
  lose_at_end(other.files.control, "b");
  EXPECT_THAT(other.first(), HasSubstr("b is held, but the uninterrupted run lacks it"));
}

TEST(Contradictions, WantsTensorsAtTheEnd) {
  RecordedRun run;
  for (auto* files : all(run)) {
    lose_at_end(*files, "b");
    for (auto& text : *files) {
      const auto end = text.find(R"("when":"end")");
      const auto from = text.find(R"("tensors":[)", end) + 11;
      text.erase(from, text.find(R"(],"objects")", from) - from);
    }
  }
  EXPECT_THAT(run.first(), HasSubstr("the ranks report no tensors at the end"));
}

/// Replaces a text in what a rank tells of its end.
void change_end(std::string& text, const std::string& from, const std::string& to) {
  const auto at = text.find(from, text.find(R"("when":"end")"));
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
}

TEST(Contradictions, FindsARankThatHoldsAnotherCopyAtTheEnd) {
  const std::string right = hex(digest_of_rows("b", 0, kRows, 3));
  for (const std::size_t life : {0, 1}) {
    RecordedRun run;
    change_end((life == 0 ? run.files.first : run.files.second)[1], right, hex(std::uint64_t{7}));
    EXPECT_THAT(run.first(), StartsWith("REPLICA_MISMATCH: life " + std::to_string(life)));
    EXPECT_NE(first_failure(run.judged()), nullptr);
  }
  RecordedRun control;
  change_end(control.files.control[1], right, hex(std::uint64_t{7}));
  EXPECT_THAT(control.first(), HasSubstr("the uninterrupted run can't be compared with"));
  EXPECT_EQ(first_failure(control.judged()), nullptr);
  change_end(control.files.first[1], right, hex(std::uint64_t{8}));
  EXPECT_THAT(control.first(), HasSubstr("; the uninterrupted run has the same problem"));
  EXPECT_EQ(first_failure(control.judged()), nullptr) << "no save or load is to blame";
}

TEST(Contradictions, FindsAGapAtTheEnd) {
  RecordedRun run;
  for (auto& text : run.files.second) change_end(text, R"("size":[2])", R"("size":[1])");
  EXPECT_THAT(run.first(), StartsWith("COVERAGE_GAP: life 1, state at end, step 3: w has no rank"));
}

TEST(Contradictions, CallsLossesThatAreAllNoNumbersInconclusive) {
  RecordedRun run;
  for (auto* files : all(run)) {
    for (auto& text : *files) {
      for (const std::string step : {"1", "2", "3"}) {
        const auto at = text.find("\"0x1." + step + "p+0\"");
        if (at != std::string::npos) text.replace(at, 10, "\"nan\"");
      }
    }
  }
  EXPECT_THAT(run.first(), HasSubstr("no loss is a finite number"));
  EXPECT_EQ(first_failure(run.judged()), nullptr);
}

TEST(Contradictions, RefusesAStepThatIsToldTwice) {
  for (const char* loss : {"0x1.3p+0", "0x1.cp+0"}) {
    RecordedRun run;
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      std::string again = step_line(rank, 3);
      put(again, "0x1.3p+0", loss);
      auto& text = run.files.second[static_cast<std::size_t>(rank)];
      put(text, step_line(rank, 3), again + step_line(rank, 3));
    }
    EXPECT_THAT(run.first(), HasSubstr("rank 0 reports step 3 when 3 steps are done"));
  }
}

TEST(Contradictions, RefusesStepsThatAreOutOfOrderOrMissingInAllRuns) {
  RecordedRun swapped;
  for (auto* files : {&swapped.files.first, &swapped.files.control}) {
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      auto& text = (*files)[static_cast<std::size_t>(rank)];
      put(text, step_line(rank, 1) + step_line(rank, 2), step_line(rank, 2) + step_line(rank, 1));
    }
  }
  EXPECT_THAT(swapped.first(), HasSubstr("rank 0 reports step 2 when 0 steps are done"));
  RecordedRun missing;
  missing.plan.lives[0].steps = {
      {ProgramDoes::kTrain, 1}, {ProgramDoes::kSave}, {ProgramDoes::kTrain, 1}};
  for (auto* files : {&missing.files.first, &missing.files.control}) {
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      put((*files)[static_cast<std::size_t>(rank)], step_line(rank, 2), "");
    }
  }
  EXPECT_THAT(missing.first(), HasSubstr("when 1 steps are done"));
  EXPECT_EQ(first_failure(missing.judged()), nullptr);
}

TEST(Contradictions, RefusesAnEndBeforeTheLoad) {
  RecordedRun run;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    auto& text = run.files.second[static_cast<std::size_t>(rank)];
    const std::string end = state_line("end", rank, 3);
    put(text, end, "");
    put(text, state_line("loaded", rank, 2), end + state_line("loaded", rank, 2));
  }
  EXPECT_THAT(run.first(), HasSubstr("describes the state 'end' of step 3 before what it loaded"));
}

TEST(Contradictions, WantsTheSameStepsOfAllRanks) {
  RecordedRun run;
  put(run.files.second[1], step_line(1, 3), "");
  put(run.files.second[1], state_line("end", 1, 3), state_line("end", 1, 2));
  EXPECT_NE(run.first(), "");
}

TEST(Contradictions, SaysIfNobodyWaitedForASaveThatLeftNothing) {
  RecordedRun run;
  run.plan.trainer.options = {{"async", {"thread"}}};
  run.plan.lives[1].steps.push_back({ProgramDoes::kSave});
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    auto& text = run.files.second[static_cast<std::size_t>(rank)];
    put(text, state_line("end", rank, 3), state_line("save", rank, 3) + state_line("end", rank, 3));
  }
  EXPECT_THAT(run.first(), HasSubstr("nothing waited for the save of step 3"));
  EXPECT_EQ(first_failure(run.judged()), nullptr);
  run.stored.push_back(stored_at(3));
  EXPECT_EQ(run.first(), "");
  run.stored.back().tensors["w"].digest += 1;
  EXPECT_THAT(run.first(), StartsWith("BIT_MISMATCH: life 1: the save of step 3: w"));
}

TEST(Contradictions, NamesTheModuleThatCannotBeImported) {
  RecordedRun run;
  auto life = evidence_of(run.plan.lives[0], run.files.first, {1, 1});
  for (auto& rank : life.ranks) rank = {};
  for (auto& end : life.ends) end.log = "Traceback\nModuleNotFoundError: No module named 'x'\n";
  const auto findings = judge_program(run.plan, {life}, {});
  EXPECT_EQ(first_failure(findings), nullptr);
  EXPECT_THAT(findings.front().text, HasSubstr("can't run here: ModuleNotFoundError: No module"));
}

TEST(Contradictions, TellsASlowLifeFromOneThatHangs) {
  RecordedRun run;
  for (const bool progressing : {false, true}) {
    auto life = evidence_of(run.plan.lives[0], run.files.first, {137, 137});
    for (auto& end : life.ends) {
      end.timed_out = true;
      end.progressing = progressing;
      end.seconds = 120;
    }
    const auto findings = judge_program(run.plan, {life}, {});
    const auto hang = std::find_if(findings.begin(), findings.end(),
                                   [](const auto& f) { return f.code == passed_on::kHang; });
    ASSERT_NE(hang, findings.end());
    EXPECT_EQ(hang->fails(), !progressing);
    EXPECT_THAT(hang->text, HasSubstr("did not finish within 120 s (trainer.yaml: seconds)"));
    EXPECT_EQ(hang->step, 3);
  }
}

}  // namespace
}  // namespace reprise::driver
