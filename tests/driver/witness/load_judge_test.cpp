// What a load may do to a tensor, one wrong at a time.
#include "driver/witness/load_judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/driver/witness/recorded_life.hpp"

namespace reprise::driver {
namespace {

/// Replaces a text in what the ranks of the second life tell of their load.
void change_loaded(RecordedRun& run, const std::string& from, const std::string& to) {
  for (std::string& text : run.files.second) {
    const auto at = text.find(from, text.find(R"("when":"loaded")"));
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  }
}

TEST(LoadJudge, FindsATensorThatNobodyHasAfterTheLoad) {
  RecordedRun run;
  change_loaded(run,
                R"(,{"key":"b","dtype":"int32","shape":[4],"boxes":[)" +
                    box_json(0, kRows, digest_of_rows("b", 0, kRows, 2)) + R"(],"holders":2})",
                "");
  EXPECT_TRUE(run.found("LOST_OBJECT", "b is in the checkpoint of step 2 but no rank has it"))
      << run.all();
}

TEST(LoadJudge, FindsAnotherDtype) {
  RecordedRun run;
  change_loaded(run, R"("key":"b","dtype":"int32")", R"("key":"b","dtype":"float32")");
  EXPECT_TRUE(run.found("DTYPE_DRIFT", "after the load of step 2, b is float32 and was int32"))
      << run.all();
}

TEST(LoadJudge, FindsAnotherShape) {
  RecordedRun run;
  change_loaded(run, R"("key":"b","dtype":"int32","shape":[4])",
                R"("key":"b","dtype":"int32","shape":[5])");
  EXPECT_TRUE(run.found("SHAPE_DRIFT", "after the load of step 2, b has a different shape"))
      << run.all();
}

TEST(LoadJudge, FindsALoadOfWhatAnotherSaveHeld) {
  RecordedRun run;
  run.plan.lives[0].steps = {{ProgramDoes::kTrain, 1},
                             {ProgramDoes::kSave},
                             {ProgramDoes::kTrain, 1},
                             {ProgramDoes::kSave},
                             {ProgramDoes::kTrain, 1}};
  run.stored.push_back(stored_at(1));
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    auto& first = run.files.first[static_cast<std::size_t>(rank)];
    put(first, step_line(rank, 2), state_line("save", rank, 1) + step_line(rank, 2));
    auto& second = run.files.second[static_cast<std::size_t>(rank)];
    std::string older = state_line("loaded", rank, 1);
    put(older, R"("step":1)", R"("step":2)");
    put(second, state_line("loaded", rank, 2), older);
  }
  EXPECT_TRUE(run.found("STALE_BYTES", "is from the save of step 1, and so is all that changes"))
      << run.all();
}

}  // namespace
}  // namespace reprise::driver
