#include "tests/silence/judge_source.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/contracts/temporary_directory.hpp"

namespace reprise::silence {
namespace {

constexpr const char* kJudge = R"(
namespace reprise {
void find(FindingCode code, std::string text, SourceLine line = SourceLine::here()) {
  findings.push_back({.code = code, .text = text, .line = line});
}
const auto doubt = [&](const std::string& text,
                       SourceLine line = SourceLine::here()) {
  find(judged::kOracleVacuous, text, line);
};
const Row rows[] = {{judged::kBitMismatch, 3}, {judged::kProtocol, -1}};
void judge() {
  find(judged::kStaleBytes,
       "a (bracket");
  // find(judged::kZeroFill, "no code");
  if (map.find(key) == end) doubt("why");
  findings.push_back(
      {late ? Code::kIo : Code::kNoSpace, key});
  if (code == judged::kLostObject) return fail(code, "it");
}
}
)";

TEST(JudgeSource, has_each_statement_with_its_lines_and_codes) {
  const contracts::TemporaryDirectory root;
  std::ofstream(root.path() + "/judge.cpp") << kJudge;
  const JudgeSource source = read_judge(root.path(), "judge.cpp");
  std::string found;
  for (const Statement& one : source.statements) {
    found += std::to_string(one.first) + '-' + std::to_string(one.last);
    for (const FindingCode code : one.codes) found += ' ' + std::string(name_of(code));
    found += '\n';
  }
  EXPECT_EQ(found, "12-13 STALE_BYTES\n15-15\n18-18\n16-17 IO NO_SPACE\n");
  std::string named;
  for (const Named& one : source.named) {
    named += std::to_string(one.line) + ' ' + std::string(name_of(one.code)) + '\n';
  }
  EXPECT_EQ(named, "8 ORACLE_VACUOUS\n18 LOST_OBJECT\n");
}

}  // namespace
}  // namespace reprise::silence
