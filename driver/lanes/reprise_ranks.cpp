#include "driver/lanes/reprise_ranks.hpp"

#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

#include "driver/lanes/process.hpp"
#include "driver/lanes/scratch_directory.hpp"
#include "driver/record/build_info.hpp"
#include "driver/yaml/text_file.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

constexpr const char* kProgramLine = "program: ";
constexpr const char* kMpiLine = "mpi: ";
constexpr const char* kNcclLine = "nccl: ";
constexpr std::uint64_t kAnswerSeconds = 30;

/// Holds why a ranks' program can't be used, or what it says of itself.
struct Answer {
  std::optional<std::string> why_not;
  RankLibraries libraries;
};

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

Answer ask(const std::string& program) {
  if (!std::filesystem::is_regular_file(program)) {
    return {"the ranks' program does not exist: " + program, {}};
  }
  const ScratchDirectory scratch;
  const std::string file = scratch.path() + "/answer";
  std::string said;
  try {
    const ProcessEnd end =
        run_process({program, "libraries"}, file, {.deadline_s = kAnswerSeconds});
    said = text_of(file);
    if (end.exit_code == 0) {
      const RankLibraries libraries = parse_libraries(said);
      if (libraries.program == this_program()) return {std::nullopt, libraries};
      return {"the ranks' program is from another build, " + program + ": " +
                  (libraries.program.empty() ? "it does not say which" : libraries.program) +
                  "; this program is " + this_program() + "; build both",
              {}};
    }
  } catch (const Error& error) {
    said = error.message();
  }
  return {"the ranks' program does not start, " + program + ": " + first_line(said), {}};
}

/// Asks once for each path: scenarios by the thousand want to know.
const Answer& answer_of(const std::string& program) {
  static std::mutex mutex;
  static std::map<std::string, Answer> answers;
  const std::lock_guard lock(mutex);
  const auto known = answers.find(program);
  if (known != answers.end()) return known->second;
  return answers.emplace(program, ask(program)).first->second;
}

}  // namespace

std::string ranks_program(const std::string& executable) {
  // Absolute, because a bare name would be looked up in PATH.
  const auto beside = std::filesystem::path(executable).parent_path() / "reprise-ranks";
  return std::filesystem::absolute(beside).string();
}

std::optional<std::string> why_no_ranks(const std::string& executable) {
  if (!build_info().has_mpi) return "this program was built without MPI";
  return answer_of(ranks_program(executable)).why_not;
}

std::string this_program() {
  const BuildInfo info = build_info();
  return std::string(info.commit) + (info.dirty ? "+ (" : " (") + std::string(info.build) + ")";
}

std::string to_string(const RankLibraries& libraries) {
  return kProgramLine + libraries.program + '\n' + kMpiLine + libraries.mpi + '\n' + kNcclLine +
         libraries.nccl + '\n';
}

RankLibraries parse_libraries(const std::string& text) {
  RankLibraries libraries;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::pair<const char*, std::string*> fields[] = {{kProgramLine, &libraries.program},
                                                           {kMpiLine, &libraries.mpi},
                                                           {kNcclLine, &libraries.nccl}};
    for (const auto& [begin, field] : fields) {
      if (line.starts_with(begin)) *field = line.substr(std::string(begin).size());
    }
  }
  return libraries;
}

RankLibraries libraries_of_ranks(const std::string& executable) {
  if (why_no_ranks(executable)) return {};
  return answer_of(ranks_program(executable)).libraries;
}

}  // namespace reprise::driver
