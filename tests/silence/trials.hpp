#pragma once
// Runs tests of judges as child processes, with or without one line of a judge silenced.

#include <map>
#include <string>
#include <vector>

namespace reprise::silence {

struct JudgeTest {
  std::string program;  ///< such as "test_properties"
  std::string name;
  double seconds = 0;
};

/// What judges state: "driver/judges/life_judge.cpp:46 MIXED_GENERATION". With "*" in the place of
/// the code it is all that is stated there.
using Stated = std::string;

/// Runs the tests of judges once and returns, for each statement, the tests that make judges state
/// it. A test program that fails is named in `failed`.
std::map<Stated, std::vector<JudgeTest>> hear(std::vector<std::string>& failed);

/// Returns the statements of which no test fails when they are silenced. Runs the quickest tests
/// first, and no more than are needed for one to fail.
std::vector<Stated> unneeded(const std::map<Stated, std::vector<JudgeTest>>& heard);

}  // namespace reprise::silence
