// Tests that this build's compiler rejects code that confuses types which must be kept apart.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <string>

namespace reprise {
namespace {

const std::string kSource = REPRISE_SOURCE_DIR "/tests/must_not_compile/sources/ranks.cpp";

struct Compiled {
  bool accepted = false;
  std::string said;
};

Compiled compile(const std::string& flags) {
  const std::string command = std::string("LC_ALL=C " REPRISE_CXX " -std=c++20 -fsyntax-only -I ") +
                              REPRISE_SOURCE_DIR + " -I " + REPRISE_SOURCE_DIR + "/include " +
                              flags + " " + kSource + " 2>&1";
  Compiled result;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  char buffer[4096];
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) result.said += buffer;
  const int status = pclose(pipe);
  result.accepted = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return result;
}

/// Returns the numbers of the lines that are marked WRONG; the first line is 1.
std::set<int> wrong_lines() {
  std::ifstream in(kSource);
  std::set<int> lines;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.find("// WRONG") != std::string::npos) lines.insert(number);
  }
  return lines;
}

/// Returns the numbers of the source's lines in which the compiler reports errors.
std::set<int> refused_lines(const std::string& said) {
  const std::regex error("ranks\\.cpp:([0-9]+):[0-9]+: error:");
  std::set<int> lines;
  for (std::sregex_iterator at(said.begin(), said.end(), error), end; at != end; ++at) {
    lines.insert(std::stoi((*at)[1]));
  }
  return lines;
}

TEST(MustNotCompile, each_mixed_up_rank_is_refused_in_its_line_and_nothing_else) {
  ASSERT_EQ(wrong_lines().size(), 11U);
  const Compiled control = compile("");
  ASSERT_TRUE(control.accepted) << control.said;
  const Compiled wrong = compile("-DMIX_UP");
  EXPECT_FALSE(wrong.accepted);
  EXPECT_EQ(refused_lines(wrong.said), wrong_lines()) << wrong.said;
}

}  // namespace
}  // namespace reprise
