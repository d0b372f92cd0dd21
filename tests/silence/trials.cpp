#include "tests/silence/trials.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <functional>
#include <mutex>
#include <thread>

#include "driver/lanes/process.hpp"
#include "driver/lanes/scratch_directory.hpp"

namespace reprise::silence {
namespace {

constexpr std::uint64_t kDeadlineS = 120;
/// Exit codes of a shell that could not start a program.
constexpr int kNoProgram = 126;

/// A program, and which of its tests are run: those that take long hold nothing that others do not.
struct Program {
  const char* name;
  const char* filter;
};
constexpr std::array kPrograms = {
    Program{"test_driver",
            "ContentJudge.*:CrashModels.a_planned_power*:LearningRates.*:LifeJudge.*:"
            "ProcessLane.*:RankMain.*:RngJudge.*:Run.damage_of*:StoreJudge.*:StoredVerbs.*:"
            "UnendedSave.*:Verdict*"},
    Program{"test_driver_canaries", "*EachFinding*"},
    Program{"test_driver_exhaust", "PairTallyTest.*"},
    Program{"test_driver_judges", "*"},
    Program{"test_driver_programs", "-Needs.*:Progress.*"},
    Program{"test_driver_random", "Property.*"},
    Program{"test_driver_witness", "*"},
    Program{"test_properties", "*"},
};

/// Calls `work` with 0 up to count - 1, on as many threads as there are processors.
void each(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  const auto all = std::max(2U, std::thread::hardware_concurrency());
  for (unsigned i = 0; i < all; ++i) {
    threads.emplace_back([&] {
      for (std::size_t at = next++; at < count; at = next++) work(at);
    });
  }
  for (auto& thread : threads) thread.join();
}

/// Runs the tests of a program with a variable of the environment, up to the first that fails.
/// Returns the exit code.
int run(const std::string& program, const std::string& filter, const std::string& variable,
        const std::string& log) {
  return driver::run_process({"env", variable, std::string(REPRISE_BUILD_DIR) + "/" + program,
                              "--gtest_brief=1", "--gtest_fail_fast", "--gtest_filter=" + filter},
                             log, {.deadline_s = kDeadlineS})
      .exit_code;
}

/// Adds what Listener (line_watch.cpp) wrote into the file.
void add_heard(const std::string& file, const std::string& program,
               std::map<Stated, std::vector<JudgeTest>>& heard) {
  std::ifstream in(file);
  JudgeTest test{program, "", 0};
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("  ")) {
      heard[line.substr(2)].push_back(test);
      continue;
    }
    const auto end = line.find(' ');
    test.name = line.substr(0, end);
    test.seconds = std::stod(line.substr(end)) * 1e-6;
  }
}

/// True if one of the tests fails without the statement.
bool one_fails(const Stated& stated, const std::vector<JudgeTest>& tests, const std::string& log) {
  std::map<std::string, std::string> filters;
  for (const auto& test : tests) filters[test.program] += test.name + ':';
  return std::any_of(filters.begin(), filters.end(), [&](const auto& filter) {
    const int code = run(filter.first, filter.second, "REPRISE_SILENCED=" + stated, log);
    return code != 0 && code != kNoProgram && code != kNoProgram + 1;
  });
}

}  // namespace

std::map<Stated, std::vector<JudgeTest>> hear(std::vector<std::string>& failed) {
  const driver::ScratchDirectory scratch;
  std::map<Stated, std::vector<JudgeTest>> heard;
  std::mutex mutex;
  each(kPrograms.size(), [&](std::size_t i) {
    const Program& program = kPrograms[i];
    const std::string file = scratch.path() + "/" + program.name;
    const int code = run(program.name, program.filter, "REPRISE_HEARD=" + file, file + ".log");
    const std::lock_guard lock(mutex);
    if (code != 0) failed.push_back(program.name);
    add_heard(file, program.name, heard);
  });
  return heard;
}

std::vector<Stated> unneeded(const std::map<Stated, std::vector<JudgeTest>>& heard) {
  const driver::ScratchDirectory scratch;
  std::vector<std::pair<Stated, std::vector<JudgeTest>>> all(heard.begin(), heard.end());
  std::vector<Stated> found;
  std::mutex mutex;
  each(all.size(), [&](std::size_t i) {
    auto& [stated, tests] = all[i];
    std::stable_sort(tests.begin(), tests.end(),
                     [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
    const std::string log = scratch.path() + "/" + std::to_string(i);
    // Most statements need one test; the rest are tried in growing groups.
    for (std::size_t begin = 0, size = 1; begin < tests.size(); begin += size, size *= 8) {
      const auto from = tests.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto to = from + static_cast<std::ptrdiff_t>(std::min(size, tests.size() - begin));
      if (one_fails(stated, {from, to}, log)) return;
    }
    const std::lock_guard lock(mutex);
    found.push_back(stated);
  });
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace reprise::silence
