#include "driver/lanes/reprise_ranks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

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
            "the ranks' program does not exist: " + place.path() + "/reprise-ranks");
  EXPECT_EQ(libraries_of_ranks(alone).mpi, "");
}

TEST(RanksProgram, of_another_build_or_that_does_not_start_is_told_apart) {
  if (!build_info().has_mpi) GTEST_SKIP() << "built without MPI";
  const TemporaryDirectory place;
  const auto why_not = [&place](const std::string& name, const std::string& script) {
    const std::string folder = place.path() + "/" + name;
    std::filesystem::create_directory(folder);
    std::ofstream(folder + "/reprise-ranks") << script;
    std::filesystem::permissions(folder + "/reprise-ranks", std::filesystem::perms::owner_all);
    return why_no_ranks(folder + "/reprise").value_or("nothing");
  };
  const std::string answers = "#!/bin/sh\ncat <<'END'\n";
  RankLibraries libraries{this_program(), "Open MPI", "2.28"};
  EXPECT_EQ(why_not("same", answers + to_string(libraries) + "END\n"), "nothing");
  libraries.program[0] = 'x';
  EXPECT_THAT(why_not("other", answers + to_string(libraries) + "END\n"),
              HasSubstr("is from another build"));
  EXPECT_THAT(why_not("silent", "#!/bin/sh\n"), HasSubstr("it does not say which"));
  EXPECT_THAT(why_not("broken", "#!/bin/sh\necho no libmpi\nexit 127\n"),
              HasSubstr("does not start, " + place.path() + "/broken/reprise-ranks: no libmpi"));
  std::filesystem::create_directories(place.path() + "/folder/reprise-ranks");
  EXPECT_THAT(why_no_ranks(place.path() + "/folder/reprise").value_or("nothing"),
              HasSubstr("does not exist"));
}

TEST(RanksProgram, reads_back_what_it_says) {
  const RankLibraries libraries{"1234+ (Release)", "Open MPI v4.1.4: a build", "2.28.9"};
  const RankLibraries read = parse_libraries(to_string(libraries));
  EXPECT_EQ(read.program, libraries.program);
  EXPECT_EQ(read.mpi, libraries.mpi);
  EXPECT_EQ(read.nccl, libraries.nccl);
  EXPECT_EQ(parse_libraries("no such verb\n").mpi, "");
}

}  // namespace
}  // namespace reprise::driver
