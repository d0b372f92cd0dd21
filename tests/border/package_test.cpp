// A program outside: the package in an empty prefix, the examples built with it, and run.

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "reprise/reprise.hpp"
#include "tests/border/shell.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::border {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

const std::string kExamples = REPRISE_SOURCE_DIR "/examples/";

/// Installed once for all tests of this program.
class Package : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = std::make_unique<contracts::TemporaryDirectory>();
    installed_ =
        shell("cmake --install " REPRISE_BUILD_DIR " --component library --prefix " + prefix());
  }
  static void TearDownTestSuite() { directory_.reset(); }
  void SetUp() override { ASSERT_TRUE(installed_.ok) << installed_; }

  static std::string path(const std::string& name) { return directory_->path() + "/" + name; }
  static std::string prefix() { return path("prefix"); }
  static Said configure(const std::string& source, const std::string& build) {
    return shell("cmake -S " + source + " -B " + build + " -DCMAKE_PREFIX_PATH=" + prefix() +
                 " -DCMAKE_CXX_COMPILER=" REPRISE_CXX
                 " '-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Wconversion -Werror'");
  }
  /// An example's folder, built; its programs run in `run`, which is empty.
  static void build(const std::string& folder) {
    const std::string built = path(folder);
    const Said configured = configure(kExamples + folder, built);
    ASSERT_TRUE(configured.ok) << configured;
    const Said made = shell("cmake --build " + built + " -j 2");
    ASSERT_TRUE(made.ok) << made;
  }
  static Said run_in(const std::string& directory, const std::string& command) {
    fs::create_directories(directory);
    return shell("cd " + directory + " && " + command);
  }
  static std::string on_ranks(int ranks, const std::string& program) {
    return std::string("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ") +
           REPRISE_MPIEXEC + " --oversubscribe -n " + std::to_string(ranks) + " " + program;
  }

 private:
  inline static std::unique_ptr<contracts::TemporaryDirectory> directory_;
  inline static Said installed_;
};

TEST_F(Package, serves_programs_of_one_process) {
  ASSERT_NO_FATAL_FAILURE(build("local"));
  const std::string run = path("run-local");
  const Said one = run_in(run, path("local/one_process"));
  EXPECT_TRUE(one.ok) << one;
  EXPECT_THAT(one.text, HasSubstr("run: whole, 2048 elements"));
  const Said beside = run_in(run, path("local/asynchronous"));
  EXPECT_TRUE(beside.ok) << beside;
  EXPECT_THAT(beside.text, HasSubstr("async/iter_0000020: 1048576 elements"));
  EXPECT_FALSE(fs::exists(run + "/ckpt/async/iter_0000010")) << "keep is 1";
  EXPECT_THAT(shell("ldd " + path("local/one_process")).text,
              testing::AllOf(HasSubstr("libreprise.so"), Not(HasSubstr("libmpi"))));
}

TEST_F(Package, serves_programs_of_many_ranks) {
  if (std::string(REPRISE_LIBRARY_MPI_FILE).empty()) GTEST_SKIP() << "built without MPI";
  ASSERT_NO_FATAL_FAILURE(build("mpi"));
  const std::string run = path("run-mpi");
  const Said saved = run_in(run, on_ranks(4, path("mpi/ranks") + " save"));
  ASSERT_TRUE(saved.ok) << saved;
  const Said loaded = run_in(run, on_ranks(2, path("mpi/ranks")));
  EXPECT_TRUE(loaded.ok) << loaded;
  EXPECT_THAT(loaded.text, HasSubstr("1: 4800 of 4800 elements"));

  // A job that goes on with half of its ranks, and one that keeps them, end with the same bits.
  const std::string kept = path("run-kept");
  for (const auto& [directory, ranks] : {std::pair{run, 4}, {run, 2}, {kept, 4}, {kept, 4}}) {
    const Said trained = run_in(directory, on_ranks(ranks, path("mpi/trainer")));
    ASSERT_TRUE(trained.ok) << trained;
  }
  Job both = local_job(path(""));
  const DiffSummary same =
      diff(both, "run-mpi/ckpt/run/iter_0000020", "run-kept/ckpt/run/iter_0000020");
  EXPECT_EQ(same.outcome, DiffOutcome::kSame) << testing::PrintToString(same.different);
  EXPECT_EQ(same.elements, 1024U * 1024U);
  const DiffSummary other =
      diff(both, "run-mpi/ckpt/run/iter_0000010", "run-mpi/ckpt/run/iter_0000020");
  EXPECT_EQ(other.outcome, DiffOutcome::kDifferent);
}

/// The block of README.md that begins with its include, without the indentation.
std::string program_of_the_readme() {
  std::ifstream readme(REPRISE_SOURCE_DIR "/README.md");
  std::string program;
  bool inside = false;
  for (std::string line; std::getline(readme, line);) {
    inside = inside || line == "    #include <reprise/reprise.hpp>";
    if (inside && !line.empty() && !line.starts_with("    ")) return program;
    if (inside) program += (line.empty() ? line : line.substr(4)) + "\n";
  }
  return {};
}

TEST_F(Package, compiles_the_program_of_the_readme) {
  const std::string program = program_of_the_readme();
  ASSERT_THAT(program, testing::AllOf(HasSubstr("int main()"), HasSubstr("reprise::load(")));
  std::ofstream(path("readme.cpp")) << program;
  const Said made = shell(REPRISE_CXX
                          " -std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Werror "
                          "-fsyntax-only -I " +
                          prefix() + "/include " + path("readme.cpp"));
  EXPECT_TRUE(made.ok) << made;
}

TEST_F(Package, says_which_component_was_not_built) {
  const std::string project = path("component");
  fs::create_directories(project);
  std::ofstream(project + "/CMakeLists.txt")
      << "cmake_minimum_required(VERSION 3.25)\nproject(x LANGUAGES CXX)\n"
         "find_package(reprise REQUIRED COMPONENTS telepathy)\n";
  const Said configured = configure(project, project + "/build");
  EXPECT_FALSE(configured.ok);
  EXPECT_THAT(configured.text, HasSubstr("was built without its component"));
  EXPECT_THAT(configured.text, HasSubstr("'telepathy'"));
}

TEST_F(Package, hands_a_consumer_an_include_directory_and_nothing_else) {
  const std::string project = path("flags");
  fs::create_directories(project);
  std::ofstream(project + "/CMakeLists.txt") << R"(cmake_minimum_required(VERSION 3.25)
project(x LANGUAGES CXX)
find_package(reprise REQUIRED)
foreach(property COMPILE_OPTIONS COMPILE_DEFINITIONS LINK_OPTIONS)
  get_target_property(value reprise::library_reprise INTERFACE_${property})
  message(STATUS "${property}=[${value}]")
endforeach()
message(STATUS "build type=[${CMAKE_BUILD_TYPE}]")
)";
  const Said configured = configure(project, project + "/build");
  EXPECT_TRUE(configured.ok) << configured;
  for (const char* property : {"COMPILE_OPTIONS", "COMPILE_DEFINITIONS", "LINK_OPTIONS"}) {
    EXPECT_THAT(configured.text, HasSubstr(std::string(property) + "=[value-NOTFOUND]"));
  }
  EXPECT_THAT(configured.text, HasSubstr("build type=[]"));
}

TEST_F(Package, as_a_part_of_another_build_leaves_that_build_alone) {
  const std::string project = path("within");
  fs::create_directories(project);
  std::ofstream(project + "/CMakeLists.txt") << R"(cmake_minimum_required(VERSION 3.25)
project(x LANGUAGES CXX)
set(before "${CMAKE_BUILD_TYPE}|${CMAKE_CXX_STANDARD}|${CMAKE_CXX_FLAGS}|${CMAKE_POSITION_INDEPENDENT_CODE}")
add_subdirectory()" REPRISE_SOURCE_DIR R"( reprise)
set(after "${CMAKE_BUILD_TYPE}|${CMAKE_CXX_STANDARD}|${CMAKE_CXX_FLAGS}|${CMAKE_POSITION_INDEPENDENT_CODE}")
if(NOT before STREQUAL after)
  message(FATAL_ERROR "changed: ${before} to ${after}")
endif()
get_property(targets DIRECTORY )" REPRISE_SOURCE_DIR R"( PROPERTY BUILDSYSTEM_TARGETS)
list(LENGTH targets count)
list(FILTER targets EXCLUDE REGEX "^reprise_")
message(STATUS "${count} targets, other names=[${targets}]")
add_library(y INTERFACE)
target_link_libraries(y INTERFACE reprise::reprise)
)";
  const Said configured = configure(project, project + "/build");
  EXPECT_TRUE(configured.ok) << configured;
  EXPECT_THAT(configured.text, HasSubstr("targets, other names=[]"));
  EXPECT_THAT(configured.text, Not(HasSubstr("-- 0 targets")));
}

}  // namespace
}  // namespace reprise::border
