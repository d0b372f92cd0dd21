// Each difference between the ends of two runs, one at a time.
#include "driver/witness/course_judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/driver/witness/recorded_life.hpp"

namespace reprise::driver {
namespace {

using ::testing::HasSubstr;

/// Replaces a text in what the ranks tell of their end.
void change_ends(std::vector<std::string>& files, const std::string& from, const std::string& to) {
  for (std::string& text : files) {
    const auto at = text.find(from, text.find(R"("when":"end")"));
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  }
}

const std::string kCursor = R"({"key":"cursor","digest":")" + hex(std::uint64_t{3}) + "\"}";

TEST(CourseJudge, FindsEachDifferenceBetweenTheEnds) {
  struct Row {
    const char* code;
    const char* says;
    std::string from;
    std::string to;
    bool of_control = false;  ///< true if the end of the uninterrupted run is changed
  };
  const std::vector<Row> rows = {
      {"DTYPE_DRIFT", "at the end: w has a different dtype than in the uninterrupted run",
       R"("key":"w","dtype":"int32")", R"("key":"w","dtype":"float32")"},
      {"SHAPE_DRIFT", "at the end: w has a different shape than in the uninterrupted run",
       R"("key":"w","dtype":"int32","shape":[4])", R"("key":"w","dtype":"int32","shape":[5])"},
      {"LOST_OBJECT", "at the end: cursor is held by no rank", kCursor, ""},
      {"ORACLE_VACUOUS", "cursor is held, but the uninterrupted run lacks it", kCursor, "", true},
      {"TRAJECTORY_DIVERGENCE", "at the end: cursor differs from the uninterrupted run",
       hex(std::uint64_t{3}), hex(std::uint64_t{7})},
  };
  for (const Row& row : rows) {
    RecordedRun run;
    change_ends(row.of_control ? run.files.control : run.files.second, row.from, row.to);
    EXPECT_TRUE(run.found(row.code, row.says)) << row.says << " is not in:\n" << run.all();
  }
}

TEST(CourseJudge, DoubtsEndsAtDifferentSteps) {
  RecordedRun run;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    auto& text = run.files.second[static_cast<std::size_t>(rank)];
    put(text, step_line(rank, 3) + state_line("end", rank, 3), state_line("end", rank, 2));
  }
  EXPECT_TRUE(run.found("ORACLE_VACUOUS",
                        "life 1 ends at step 2, and the uninterrupted run ends "
                        "at step 3, so their ends can't be compared"))
      << run.all();
}

}  // namespace
}  // namespace reprise::driver
