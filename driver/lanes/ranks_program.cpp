#include "driver/lanes/ranks_program.hpp"

#include <filesystem>
#include <sstream>

#include "driver/lanes/process.hpp"
#include "driver/lanes/scratch_directory.hpp"
#include "driver/record/build_info.hpp"
#include "driver/yaml/text_file.hpp"

namespace reprise::driver {
namespace {

constexpr const char* kMpiLine = "mpi: ";
constexpr const char* kNcclLine = "nccl: ";
constexpr std::uint64_t kAnswerSeconds = 30;

}  // namespace

std::string ranks_program(const std::string& executable) {
  // Absolute, because a bare name would be looked up in PATH.
  const auto beside = std::filesystem::path(executable).parent_path() / "reprise-ranks";
  return std::filesystem::absolute(beside).string();
}

std::optional<std::string> why_no_ranks(const std::string& executable) {
  if (!build_info().has_mpi) return "this program was built without MPI";
  const std::string program = ranks_program(executable);
  if (std::filesystem::exists(program)) return std::nullopt;
  return "the program of the ranks is not there: " + program;
}

std::string to_string(const RankLibraries& libraries) {
  return kMpiLine + libraries.mpi + '\n' + kNcclLine + libraries.nccl + '\n';
}

RankLibraries parse_libraries(const std::string& text) {
  RankLibraries libraries;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kMpiLine)) libraries.mpi = line.substr(std::string(kMpiLine).size());
    if (line.starts_with(kNcclLine)) libraries.nccl = line.substr(std::string(kNcclLine).size());
  }
  return libraries;
}

RankLibraries libraries_of_ranks(const std::string& executable) {
  if (why_no_ranks(executable)) return {};
  const ScratchDirectory scratch;
  const std::string answer = scratch.path() + "/answer";
  const ProcessEnd end =
      run_process({ranks_program(executable), "libraries"}, answer, {.deadline_s = kAnswerSeconds});
  return end.exit_code == 0 ? parse_libraries(text_of(answer)) : RankLibraries{};
}

}  // namespace reprise::driver
