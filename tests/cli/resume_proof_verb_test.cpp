// Runs `resume-proof` on witness files and checks what it says of what it was not given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/driver/witness/witness_folders.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test {
namespace {

using driver::WitnessFolders;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ResumeProofVerb, SaysWhatItDoesNotClaimWithoutAColdRunAndCheckpoints) {
  const WitnessFolders folders{driver::RecordedFiles{}};
  const std::string report = folders.path("out");
  const auto result =
      run_program({"resume-proof", folders.path("a"), folders.path("b"), "--report", report});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(
      result.out,
      AllOf(HasSubstr(
                "not claimed: that a run that loads nothing would fail: no such run was given\n"),
            HasSubstr("not claimed: what the checkpoints contain: they were not given\n")));
  std::ifstream file(report + "/report.json");
  EXPECT_EQ(nlohmann::json::parse(file).at("not_claimed").size(), 2U);

  auto cold = driver::RecordedFiles().second;
  for (auto& text : cold) {
    driver::put(text, reprise::hex(std::uint64_t{2}), reprise::hex(std::uint64_t{7}));
    driver::put(text, R"("loss":"0x1.3p+0")", R"("loss":"0x1.9p+0")");
  }
  folders.write("cold", 1, cold);
  const auto full =
      run_program({"resume-proof", folders.path("a"), folders.path("b"), folders.path("cold")});
  EXPECT_EQ(full.exit_code, 0) << full.all();
  EXPECT_THAT(full.out, Not(HasSubstr("loads nothing would fail")));
}

TEST(ResumeProofVerb, SaysThatSeedsAndVersionsDiffer) {
  driver::RecordedFiles files;
  for (auto& text : files.control) driver::put(text, R"("seed":1)", R"("seed":2)");
  const WitnessFolders folders(files);
  const auto result = run_program({"resume-proof", folders.path("a"), folders.path("b")});
  EXPECT_THAT(result.out,
              HasSubstr("not judged: seed: 1 in life 0, but in the uninterrupted run 2"));
}

TEST(ResumeProofVerb, BlamesNobodyForAScriptThatIsNotDeterministic) {
  driver::RecordedFiles files;
  for (auto& text : files.second) {
    driver::put(text, R"("loss":"0x1.3p+0")", R"("loss":"0x1.4p+0")");
  }
  const WitnessFolders folders(files);
  const auto blamed = run_program({"resume-proof", folders.path("a"), folders.path("b")});
  EXPECT_EQ(blamed.exit_code, 1) << blamed.all();
  EXPECT_THAT(blamed.out, HasSubstr("--second"));
  auto again = files.control;
  for (auto& text : again) driver::put(text, R"("loss":"0x1.3p+0")", R"("loss":"0x1.5p+0")");
  folders.write("second", 0, again);
  const auto result = run_program(
      {"resume-proof", folders.path("a"), folders.path("b"), "--second", folders.path("second")});
  EXPECT_EQ(result.exit_code, 3) << result.all();
  EXPECT_THAT(result.out, AllOf(HasSubstr("NOT_DETERMINISTIC: two runs of the same steps differ"),
                                HasSubstr("--second " + folders.path("second"))));
}

}  // namespace
}  // namespace reprise::test
