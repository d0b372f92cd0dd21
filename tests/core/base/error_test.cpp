#include "reprise/error.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "core/base/check.hpp"
#include "core/base/codes.hpp"

namespace reprise {
namespace {

std::vector<Code> all_codes() {
  std::vector<Code> codes;
  for (std::uint32_t i = 0; i < kErrorCodesEnd; ++i) {
    if (is_error(static_cast<Code>(i))) codes.push_back(static_cast<Code>(i));
  }
  return codes;
}

TEST(Error, every_code_has_a_name_of_its_own_that_leads_back_to_it) {
  std::set<std::string_view> names;
  for (const Code code : all_codes()) {
    const auto name = name_of(code);
    EXPECT_NE(name, "UNKNOWN") << static_cast<int>(code);
    EXPECT_EQ(name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), name.npos) << name;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(code_named(name), code) << name;
  }
}

/// Returns all matches of `pattern` in a source file. The matches are names such as kCoverageGap.
std::set<std::string> names_in(const std::string& source, const std::regex& pattern) {
  std::ifstream in(REPRISE_SOURCE_DIR "/" + source);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
    names.insert((*at)[1]);
  }
  return names;
}

/// Turns "kCoverageGap" into "COVERAGE_GAP".
std::string as_printed(const std::string& name) {
  std::string printed;
  for (const char c : name.substr(1)) {
    if (std::isupper(c) != 0 && !printed.empty()) printed += '_';
    printed += static_cast<char>(std::toupper(c));
  }
  return printed;
}

TEST(Error, a_code_is_printed_as_it_is_spelled) {
  auto names = names_in("include/reprise/error.hpp", std::regex("\n  (k[A-Za-z]+)( = \\d+)?,"));
  ASSERT_TRUE(names.contains("kUsage") && names.contains("kInternal"));
  names.merge(names_in("core/base/codes.hpp", std::regex("constexpr Code (k[A-Za-z]+)\\{")));
  std::set<std::string_view> printed;
  for (const Code code : all_codes()) printed.insert(name_of(code));
  EXPECT_EQ(names.size(), printed.size());
  for (const auto& name : names) EXPECT_TRUE(printed.contains(as_printed(name))) << name;
  EXPECT_EQ(name_of(Code::kCollectiveMismatch), "COLLECTIVE_MISMATCH");
  EXPECT_EQ(name_of(Code::kChecksum), "CHECKSUM");
  EXPECT_EQ(name_of(passed_on::kStaleDerived), "STALE_DERIVED");
}

TEST(Error, carries_a_public_code_or_one_that_is_passed_on) {
  EXPECT_TRUE(is_error(Code::kUsage));
  EXPECT_TRUE(is_error(Code::kInternal));
  EXPECT_TRUE(is_error(passed_on::kHang));
  EXPECT_FALSE(is_error(static_cast<Code>(kErrorCodesEnd)));
  EXPECT_FALSE(is_error(static_cast<Code>(UINT32_MAX))) << "a number that a peer may send";
  EXPECT_EQ(name_of(static_cast<Code>(kErrorCodesEnd)), "UNKNOWN");
}

TEST(Error, a_name_that_is_nobodys_leads_nowhere) {
  for (const char* name : {"", "UNKNOWN", "usage", "USAGE ", "COVERAGE", "BIT_MISMATCH"}) {
    EXPECT_FALSE(code_named(name)) << name;
  }
}

TEST(Error, what_is_one_line_with_what_is_known_of_the_place) {
  struct Row {
    ErrorPlace place;
    const char* what;
  };
  const Row rows[] = {
      {{}, "IO: no answer"},
      {{.rank = GlobalRank{0}}, "IO: no answer [rank 0]"},
      {{.key = "a.b"}, "IO: no answer [key a.b]"},
      {{.file = "d/f"}, "IO: no answer [file d/f]"},
      {{.offset = 0}, "IO: no answer [offset 0]"},
      {{.rank = GlobalRank{7}, .key = "k", .file = "f", .offset = 12},
       "IO: no answer [rank 7, key k, file f, offset 12]"},
  };
  for (const auto& row : rows) {
    EXPECT_STREQ(Error(Code::kIo, "no answer", row.place).what(), row.what);
  }
}

TEST(Error, within_fills_what_is_not_known_and_keeps_the_rest) {
  const ErrorPlace outer{.rank = GlobalRank{1}, .key = "outer", .file = "o", .offset = 5};
  const auto filled = Error(Code::kIo, "m").within(outer);
  EXPECT_STREQ(filled.what(), "IO: m [rank 1, key outer, file o, offset 5]");

  const ErrorPlace inner{.rank = GlobalRank{2}, .key = "inner", .file = "i", .offset = 0};
  const auto kept = Error(Code::kIo, "m", inner).within(outer);
  EXPECT_STREQ(kept.what(), "IO: m [rank 2, key inner, file i, offset 0]");
  EXPECT_EQ(kept.code(), Code::kIo);
  EXPECT_EQ(kept.message(), "m");
}

TEST(Check, a_broken_invariant_says_what_and_where_and_prints_its_values) {
  const int got = 3;
  try {
    CHECK(got == 4, got, "wanted 4");
    FAIL() << "CHECK did not throw";
  } catch (const CheckFailure& failure) {
    const std::string what = failure.what();
    EXPECT_NE(what.find("got == 4"), what.npos) << what;
    EXPECT_NE(what.find(" 3 wanted 4"), what.npos) << what;
    EXPECT_NE(what.find("error_test.cpp"), what.npos) << what;
  }
  EXPECT_NO_THROW(CHECK(got == 3));
}

}  // namespace
}  // namespace reprise
