// Ranks that disagree on the state of their job, in one way at a time.
#include "driver/witness/whole_state.hpp"

#include <gtest/gtest.h>

#include "tests/driver/witness/recorded_life.hpp"

namespace reprise::driver {
namespace {

/// Merges the end of the uninterrupted run, of which rank 1 tells something else.
std::string merged(const std::string& from, const std::string& to) {
  RecordedFiles files;
  auto& text = files.control[1];
  text.replace(text.find(from, text.find(R"("when":"end")")), from.size(), to);
  const LifeEvidence life = evidence_of(two_lives().lives[0], files.control);
  Findings findings;
  merge_states(life.ranks, StateMoment::kEnd, 0, 0, findings);
  std::string all;
  for (const auto& finding : findings) {
    all += std::string(name_of(finding.code)) + ": " + finding.text + "\n";
  }
  return all;
}

TEST(WholeState, WantsAllRanksAtOneStep) {
  EXPECT_EQ(merged(R"("step":3,"tensors")", R"("step":2,"tensors")"),
            "VERDICT_DISAGREEMENT: life 0, state at end, step 3: rank 1 is at step 2\n");
}

TEST(WholeState, WantsOneShapeAndDtypeOfATensor) {
  const std::string says =
      ": life 0, state at end, step 3: b has a different shape or dtype than on rank 0\n";
  EXPECT_EQ(merged(R"("key":"b","dtype":"int32")", R"("key":"b","dtype":"float32")")
                .substr(0, 11 + says.size()),
            "DTYPE_DRIFT" + says);
  EXPECT_EQ(
      merged(R"("key":"b","dtype":"int32","shape":[4])", R"("key":"b","dtype":"int32","shape":[5])")
          .substr(0, 11 + says.size()),
      "SHAPE_DRIFT" + says);
}

TEST(WholeState, WantsEachBoxOnAsManyRanksAsTold) {
  const std::string all = merged(box_json(0, kRows, digest_of_rows("b", 0, kRows, 3)), "");
  EXPECT_EQ(all,
            "KEYSET_ASYMMETRY: life 0, state at end, step 3: b[0:4] is held by 1 ranks, but 2 "
            "should hold it\n");
}

}  // namespace
}  // namespace reprise::driver
