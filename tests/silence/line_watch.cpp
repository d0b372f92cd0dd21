// Linked into the tests of judges. By REPRISE_HEARD it tells which lines of judges each test makes
// state a code; by REPRISE_SILENCED it lets the judges state no code at one of these lines.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <set>
#include <string>

#include "properties/finding_watch.hpp"

namespace reprise::silence {
namespace {

/// Returns "driver/judges/life_judge.cpp" for a path that ends so; empty for a file of tests.
std::string file_in_tree(const std::string& path) {
  for (const char* folder : {"driver/", "properties/"}) {
    const auto at = path.rfind(folder);
    if (at == std::string::npos) continue;
    return path.substr(0, at).ends_with("tests/") ? "" : path.substr(at);
  }
  return "";
}

struct Watch {
  std::string heard_file;
  /// Such as "driver/judges/life_judge.cpp:46 MIXED_GENERATION"; with "*" for any code.
  std::string silenced;
  std::mutex mutex;
  std::set<std::string> heard;
};

Watch& watch() {
  static Watch* const one = new Watch;  // judges may speak while the process ends
  return *one;
}

bool hear(const SourceLine& line, FindingCode code) {
  const std::string file = file_in_tree(line.file);
  if (file.empty()) return true;
  const std::string place = file + ':' + std::to_string(line.number) + ' ';
  const std::string stated = place + std::string(name_of(code));
  if (!watch().heard_file.empty()) {
    const std::lock_guard lock(watch().mutex);
    watch().heard.insert(stated);
  }
  return watch().silenced != stated && watch().silenced != place + '*';
}

/// Writes for each test "NAME MICROSECONDS", and after it the lines that it heard.
class Listener final : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& /*test*/) override {
    const std::lock_guard lock(watch().mutex);
    watch().heard.clear();
    begin_ = std::chrono::steady_clock::now();
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    const auto took = std::chrono::steady_clock::now() - begin_;
    const std::lock_guard lock(watch().mutex);
    std::ofstream out(watch().heard_file, std::ios::app);
    out << test.test_suite_name() << '.' << test.name() << ' '
        << std::chrono::duration_cast<std::chrono::microseconds>(took).count() << '\n';
    for (const std::string& stated : watch().heard) out << "  " << stated << '\n';
  }

  std::chrono::steady_clock::time_point begin_;
};

std::string from_environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

const bool begun = [] {
  watch().heard_file = from_environment("REPRISE_HEARD");
  watch().silenced = from_environment("REPRISE_SILENCED");
  if (!watch().heard_file.empty()) {
    testing::UnitTest::GetInstance()->listeners().Append(new Listener);
  }
  if (!watch().heard_file.empty() || !watch().silenced.empty()) watch_findings(hear);
  return true;
}();

}  // namespace
}  // namespace reprise::silence
