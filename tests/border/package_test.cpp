// Installs the package into an empty prefix, builds the examples with it, and runs them.

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/ports/passing_store.hpp"
#include "reprise/reprise.hpp"
#include "tests/border/shell.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::border {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

/// An address of this host where nobody listens but who is told of it: the port stays bound.
class FreeAddress {
 public:
  FreeAddress() : handle_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    auto* const raw = reinterpret_cast<sockaddr*>(&address_);
    const int on = 1;
    EXPECT_EQ(::setsockopt(handle_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    EXPECT_EQ(::bind(handle_, raw, size), 0);
    EXPECT_EQ(::getsockname(handle_, raw, &size), 0);
  }
  FreeAddress(const FreeAddress&) = delete;
  FreeAddress& operator=(const FreeAddress&) = delete;
  ~FreeAddress() { ::close(handle_); }
  std::string text() const { return "127.0.0.1:" + std::to_string(ntohs(address_.sin_port)); }

 private:
  int handle_;
  sockaddr_in address_ = {};
};

const std::string kExamples = REPRISE_SOURCE_DIR "/examples/";
const std::string kPrograms = REPRISE_SOURCE_DIR "/tests/border/programs";
const bool kHasMpi = !std::string(REPRISE_LIBRARY_MPI_FILE).empty();
const bool kHasCuda = !std::string(REPRISE_LIBRARY_CUDA_FILE).empty();
const bool kHasNccl = !std::string(REPRISE_LIBRARY_NCCL_FILE).empty();

/// Installs the package once for all tests of this program.
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
  static Said configure(const std::string& source, const std::string& build,
                        const std::string& with = prefix()) {
    return shell("cmake -S " + source + " -B " + build + " -DCMAKE_PREFIX_PATH=" + with +
                 " -DCMAKE_CXX_COMPILER=" REPRISE_CXX
                 " '-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Wconversion -Werror'");
  }
  /// Builds the project in `folder` into the directory `name`.
  static void build(const std::string& folder, const std::string& name) {
    const std::string built = path(name);
    const Said configured = configure(folder, built);
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
  ASSERT_NO_FATAL_FAILURE(build(kExamples + "local", "local"));
  const std::string run = path("run-local");
  const Said one = run_in(run, path("local/one_process"));
  EXPECT_TRUE(one.ok) << one;
  EXPECT_THAT(one.text, HasSubstr("run: whole, 2048 elements"));
  const Said beside = run_in(run, path("local/asynchronous"));
  EXPECT_TRUE(beside.ok) << beside;
  EXPECT_THAT(beside.text, HasSubstr("async/iter_0000020: 1048576 elements"));
  EXPECT_FALSE(fs::exists(run + "/ckpt/async/iter_0000010")) << "keep is 1";
  const Said queued = run_in(run, path("local/queued"));
  EXPECT_TRUE(queued.ok) << queued;
  EXPECT_THAT(queued.text, testing::AllOf(HasSubstr("queued/iter_0000005: fresh"),
                                          HasSubstr("queued/iter_0000020: reused")));
  const Said torch = run_in(run, path("local/torch_state"));
  EXPECT_TRUE(torch.ok) << torch;
  EXPECT_THAT(torch.text, testing::AllOf(HasSubstr("torch/step-1: plan fresh"),
                                         HasSubstr("torch/step-3: plan reused"),
                                         HasSubstr("torch/step-3: 42 elements")));
  EXPECT_FALSE(fs::exists(run + "/ckpt/torch/step-1")) << "keep is 2";
  const Said planned = run_in(run, path("local/own_plan"));
  EXPECT_TRUE(planned.ok) << planned;
  EXPECT_THAT(planned.text, testing::AllOf(HasSubstr("1 tensor, 1 object"),
                                           HasSubstr("NO_WRITER: no rank is chosen to write")));
  EXPECT_THAT(shell("ldd " + path("local/one_process")).text,
              testing::AllOf(HasSubstr("libreprise.so"), Not(HasSubstr("libmpi"))));
}

/// Kills the process just before the finished checkpoint is renamed to its final name.
class DyingStore final : public PassingStore {
 public:
  explicit DyingStore(std::shared_ptr<Store> inner)
      : PassingStore(*inner), owned_(std::move(inner)) {}
  void publish(const NameChange& /*change*/) override { raise(SIGKILL); }

 private:
  std::shared_ptr<Store> owned_;
};

void leave_a_save_that_died(const std::string& root) {
  const pid_t child = fork();
  if (child == 0) {
    JobPorts ports = local_ports(root);
    ports.store = std::make_shared<DyingStore>(ports.store);
    Job job(std::move(ports));
    save(job, State(), {.directory = "run", .step = 10});
    std::_Exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
}

TEST_F(Package, serves_programs_of_many_ranks) {
  if (!kHasMpi) GTEST_SKIP() << "built without MPI";
  ASSERT_NO_FATAL_FAILURE(build(kExamples + "mpi", "mpi"));
  const std::string run = path("run-mpi");
  const Said saved = run_in(run, on_ranks(4, path("mpi/ranks") + " save"));
  ASSERT_TRUE(saved.ok) << saved;
  const Said loaded = run_in(run, on_ranks(2, path("mpi/ranks")));
  EXPECT_TRUE(loaded.ok) << loaded;
  EXPECT_THAT(loaded.text, HasSubstr("1: 4800 of 4800 elements"));

  // If a process died during the first save, the next save must still succeed.
  leave_a_save_that_died(run + "/ckpt");

  // Two jobs, one that continues on half of its ranks and one that keeps all ranks, must end with
  // bit-identical states.
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

/// Returns the lines of examples/README.md that contain `word`, without the indentation.
std::vector<std::string> lines_of_the_examples(const std::string& word) {
  std::ifstream readme(kExamples + "README.md");
  std::vector<std::string> lines;
  for (std::string line; std::getline(readme, line);) {
    if (line.starts_with("    ") && line.find(word) != line.npos) lines.push_back(line.substr(4));
  }
  return lines;
}

TEST_F(Package, works_without_a_launcher_as_the_examples_readme_says) {
  const auto said = lines_of_the_examples("four_processes");
  ASSERT_EQ(said.size(), 2U);
  ASSERT_EQ(lines_of_the_examples("MASTER").size(), 1U);
  ASSERT_NO_FATAL_FAILURE(build(kExamples + "sockets", "run-sockets/build/sockets"));
  const std::string run = path("run-sockets");
  const FreeAddress address;
  const std::string master = "export MASTER=" + address.text() + "; ";
  const Said saved = run_in(run, master + said[0]);
  EXPECT_EQ(saved.text, "");
  const Said loaded = run_in(run, master + said[1]);
  EXPECT_THAT(loaded.text, HasSubstr("0: 3200 of 3200 elements\n"));
  EXPECT_THAT(loaded.text, HasSubstr("1: 3200 of 3200 elements\n"));
  Job here = local_job(run);
  const Verification whole = verify(here, "ckpt/run");
  EXPECT_EQ(whole.verdict, VerifyVerdict::kWhole);
  EXPECT_EQ(whole.elements, 6400U);
  const Said alone =
      run_in(run, master + "RANK=0 WORLD_SIZE=1 timeout 60 build/sockets/four_processes");
  EXPECT_EQ(alone.text, "0: 6400 of 6400 elements\n");
  EXPECT_THAT(shell("ldd " + run + "/build/sockets/four_processes").text,
              testing::AllOf(HasSubstr("libreprise.so"), Not(HasSubstr("libmpi"))));
}

/// Returns the program in README.md, from its first include on, without the indentation.
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

TEST_F(Package, runs_the_program_of_the_readme) {
  if (!kHasMpi) GTEST_SKIP() << "built without MPI";
  const std::string program = program_of_the_readme();
  ASSERT_THAT(program, testing::AllOf(HasSubstr("int main()"), HasSubstr("reprise::load(")));
  const std::string project = path("readme");
  fs::create_directories(project);
  std::ofstream(project + "/readme.cpp") << program;
  std::ofstream(project + "/CMakeLists.txt") << R"(cmake_minimum_required(VERSION 3.25)
project(x LANGUAGES CXX)
find_package(reprise REQUIRED COMPONENTS mpi)
add_executable(readme readme.cpp)
target_link_libraries(readme PRIVATE reprise::reprise)
)";
  ASSERT_NO_FATAL_FAILURE(build(project, "readme/build"));
  const Said ran = run_in(path("run-readme"), on_ranks(2, path("readme/build/readme")));
  EXPECT_TRUE(ran.ok) << ran;
  Job here = local_job(path("run-readme"));
  const Verification saved = verify(here, "ckpt/run");
  EXPECT_EQ(saved.verdict, VerifyVerdict::kWhole);
  EXPECT_EQ(saved.elements, 1024U * 1024U);
}

TEST_F(Package, serves_the_engine_as_a_trainer) {
  const std::string reprise = REPRISE_BUILD_DIR "/reprise";
  if (!fs::exists(reprise)) GTEST_SKIP() << "built without the program";
  ASSERT_NO_FATAL_FAILURE(build(REPRISE_SOURCE_DIR "/trainers/engine", "trainer"));
  const std::string folder = path("trainers/engine");
  fs::create_directories(folder);
  std::ifstream file(REPRISE_SOURCE_DIR "/trainers/engine/trainer.yaml");
  std::string yaml{std::istreambuf_iterator<char>(file), {}};
  const std::string built_here = "{programs}";
  const auto at = yaml.find(built_here);
  ASSERT_NE(at, std::string::npos);
  std::ofstream(folder + "/trainer.yaml") << yaml.replace(at, built_here.size(), path("trainer"));
  const Said ran = shell(reprise +
                         " run " REPRISE_SOURCE_DIR
                         "/scenarios/trainers/engine-three-lives.yaml --lane program --trainers " +
                         path("trainers"));
  EXPECT_TRUE(ran.ok) << ran;
  EXPECT_THAT(ran.text, HasSubstr("pass: 1 scenario on lane program"));
}

/// The programs of this folder, built once.
class Programs : public Package {
 protected:
  static void SetUpTestSuite() {
    Package::SetUpTestSuite();
    build(kPrograms, "programs");
  }
};

TEST_F(Programs, link_the_operators_that_headers_declare) {
  const Said used = shell(path("programs/operators"));
  EXPECT_TRUE(used.ok) << used;
  EXPECT_THAT(used.text, HasSubstr("{'a': 1} [4, 6] {0 1} dp2 USAGE float32\nerror TORN_FILE"));
}

TEST_F(Programs, with_an_mpi_of_their_own_keep_their_messages) {
  if (!kHasMpi) GTEST_SKIP() << "built without MPI";
  const Said ran = run_in(path("run-own"), on_ranks(2, path("programs/own_mpi")));
  EXPECT_TRUE(ran.ok) << ran;
  EXPECT_THAT(ran.text, HasSubstr("0: same 1, from 1"));
  EXPECT_THAT(ran.text, HasSubstr("1: same 1, from 0"));
}

TEST_F(Programs, that_end_a_job_alone_wait_no_longer_than_its_deadline) {
  if (!kHasMpi) GTEST_SKIP() << "built without MPI";
  const std::string run = path("run-early");
  const Said ran =
      run_in(run, "timeout 60 sh -c '" + on_ranks(2, path("programs/leaves_early")) + "'");
  EXPECT_TRUE(fs::exists(run + "/gone")) << ran;
}

TEST_F(Programs, are_told_which_device_is_not_there) {
  if (!kHasCuda) GTEST_SKIP() << "built without CUDA";
  const Said ran = shell(path("programs/on_device") + " 99");
  EXPECT_TRUE(ran.ok) << ran;
  EXPECT_THAT(ran.text, testing::StartsWith("UNSUPPORTED: "));
  EXPECT_THAT(shell("ldd " + path("programs/on_device")).text, HasSubstr("libreprise_cuda.so"));
}

TEST_F(Programs, are_told_that_there_is_no_device_to_send_from) {
  if (!kHasNccl) GTEST_SKIP() << "built without NCCL";
  const Said ran = shell(path("programs/between_devices") + " 99");
  EXPECT_TRUE(ran.ok) << ran;
  EXPECT_THAT(ran.text, testing::StartsWith("UNSUPPORTED: "));
  EXPECT_THAT(shell("ldd " + path("programs/between_devices")).text,
              HasSubstr("libreprise_nccl.so"));
}

/// Creates a project that requires a component of the package.
std::string asking_for(const std::string& component, const std::string& project) {
  fs::create_directories(project);
  std::ofstream(project + "/CMakeLists.txt")
      << "cmake_minimum_required(VERSION 3.25)\nproject(x LANGUAGES CXX)\n"
         "find_package(reprise REQUIRED COMPONENTS " +
             component + ")\n";
  return project;
}

TEST_F(Package, says_which_component_was_not_built_and_by_which_option_it_is) {
  const std::string without = path("without");
  fs::copy(prefix(), without, fs::copy_options::recursive);
  const Said renamed = shell("find " + without +
                             " -name 'reprise-targets*.cmake' -exec sed -i "
                             "s/library_reprise_/library_of_another_name_/g {} +");
  ASSERT_TRUE(renamed.ok) << renamed;
  for (const auto& [component, option] :
       {std::pair{"mpi", "MPI"}, {"cuda", "CUDA"}, {"nccl", "NCCL"}}) {
    const std::string project = asking_for(component, path(component + std::string("-asked")));
    const Said configured = configure(project, project + "/build", without);
    EXPECT_FALSE(configured.ok);
    EXPECT_THAT(configured.text, HasSubstr("was built without its component"));
    EXPECT_THAT(configured.text, HasSubstr(std::string("-DREPRISE_") + option + "=ON"));
  }
  const std::string project = asking_for("telepathy", path("no-such"));
  const Said configured = configure(project, project + "/build");
  EXPECT_FALSE(configured.ok);
  EXPECT_THAT(configured.text, HasSubstr("has no component 'telepathy'"));
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
