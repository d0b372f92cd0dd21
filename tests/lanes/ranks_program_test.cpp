#include "driver/lanes/ranks_program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "driver/lanes/process.hpp"
#include "driver/record/build_info.hpp"
#include "driver/yaml/text_file.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/lanes/lane_options.hpp"

namespace reprise::driver {
namespace {

using contracts::TemporaryDirectory;
using testing::HasSubstr;
using testing::Not;

/// Returns what the dynamic loader would load for a program.
std::string libraries_for(const std::string& program) {
  const TemporaryDirectory place;
  const std::string answer = place.path() + "/answer";
  EXPECT_EQ(run_process({"ldd", program}, answer, {.deadline_s = 30}).exit_code, 0);
  return text_of(answer);
}

TEST(RanksProgram, alone_needs_mpi_and_nccl_to_start) {
  if (!build_info().has_mpi) GTEST_SKIP() << "built without MPI";
  EXPECT_THAT(libraries_for(ranks_program(REPRISE_EXE)), HasSubstr("libmpi"));
  const std::string needed = libraries_for(REPRISE_EXE);
  for (const char* library : {"libmpi", "libnccl", "libhwloc", "libopen-"}) {
    EXPECT_THAT(needed, Not(HasSubstr(library)));
  }
}

TEST(RanksProgram, tells_its_libraries) {
  if (!build_info().has_mpi) GTEST_SKIP() << "built without MPI";
  const RankLibraries libraries = libraries_of_ranks(REPRISE_EXE);
  EXPECT_FALSE(libraries.mpi.empty());
  EXPECT_EQ(libraries.nccl.empty(), !build_info().has_nccl);
}

TEST(RanksProgram, is_missed_where_it_does_not_stand_beside_the_program) {
  if (!build_info().has_mpi) GTEST_SKIP() << "built without MPI";
  const TemporaryDirectory place;
  const std::string alone = place.path() + "/reprise";
  EXPECT_EQ(why_no_ranks(alone),
            "the program of the ranks is not there: " + place.path() + "/reprise-ranks");
  EXPECT_EQ(libraries_of_ranks(alone).mpi, "");
  std::filesystem::create_symlink(REPRISE_EXE, ranks_program(alone));
  EXPECT_EQ(why_no_ranks(alone), std::nullopt);
}

TEST(RanksProgram, reads_back_what_it_says) {
  const RankLibraries libraries{"Open MPI v4.1.4: a build", "2.28.9"};
  const RankLibraries read = parse_libraries(to_string(libraries));
  EXPECT_EQ(read.mpi, libraries.mpi);
  EXPECT_EQ(read.nccl, libraries.nccl);
  EXPECT_EQ(parse_libraries("no such verb\n").mpi, "");
}

}  // namespace
}  // namespace reprise::driver
