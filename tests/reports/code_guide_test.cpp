// Compares the explanations of codes with the codes that exist and with the page that repeats them.

#include "reports/code_guide.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace reprise::test::code_guide_test {
namespace {

using ::testing::EndsWith;

TEST(CodeGuide, each_code_of_an_error_or_a_verdict_is_explained_once) {
  std::set<FindingCode> explained;
  for (const auto& guide : reports::code_guides()) EXPECT_TRUE(explained.insert(guide.code).second);
  std::set<FindingCode> all;
  for (std::uint32_t number = 0; number < kErrorCodesEnd; ++number) {
    if (is_error(Code{number})) all.insert(Code{number});
  }
  for (std::uint32_t i = 0; i < judged::kCount; ++i) all.insert(FindingCode{judged::kFirst + i});
  EXPECT_EQ(explained, all);
}

TEST(CodeGuide, explanations_are_whole_sentences) {
  for (const auto& guide : reports::code_guides()) {
    for (const auto text : {guide.meaning, guide.causes, guide.action}) {
      EXPECT_THAT(std::string(text), EndsWith(".")) << guide.code;
      EXPECT_TRUE(std::isupper(static_cast<unsigned char>(text.front()))) << guide.code;
    }
  }
}

TEST(CodeGuide, the_page_of_judges_has_the_meaning_of_exactly_these_codes) {
  std::ifstream file(std::filesystem::path(REPRISE_SOURCE_DIR) / "docs/judges.md");
  std::string line;
  std::vector<std::string> on_page;
  while (std::getline(file, line) && line != "## Codes") {
  }
  while (std::getline(file, line)) {
    if (line.starts_with("| `")) on_page.push_back(line);
  }
  std::vector<std::string> expected;
  for (const auto& guide : reports::code_guides()) {
    std::ostringstream row;
    row << "| `" << guide.code << "` | " << guide.meaning << " |";
    expected.push_back(row.str());
  }
  EXPECT_EQ(on_page, expected);
}

}  // namespace
}  // namespace reprise::test::code_guide_test
