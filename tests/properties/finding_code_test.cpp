#include "properties/finding_code.hpp"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string_view>
#include <type_traits>

namespace reprise {
namespace {

TEST(FindingCode, every_judged_code_has_a_unique_name_that_is_read_back) {
  std::set<std::string_view> names;
  for (std::uint32_t i = 0; i < judged::kCount; ++i) {
    const FindingCode code(judged::kFirst + i);
    const auto name = name_of(code);
    EXPECT_EQ(name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), name.npos) << name;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(finding_code_named(name), code) << name;
    EXPECT_FALSE(code_named(name)) << name << " is an Error's too";
  }
  EXPECT_EQ(name_of(FindingCode(judged::kFirst + judged::kCount)), "UNKNOWN");
}

TEST(FindingCode, judged_codes_are_printed_as_they_are_spelled) {
  EXPECT_EQ(name_of(judged::kBitMismatch), "BIT_MISMATCH");
  EXPECT_EQ(name_of(judged::kRngStreamCollapse), "RNG_STREAM_COLLAPSE");
  EXPECT_EQ(name_of(judged::kValidatorVacuous), "VALIDATOR_VACUOUS");
  EXPECT_EQ(name_of(judged::kFalseReplica), "FALSE_REPLICA");
  EXPECT_EQ(name_of(judged::kKeysetAsymmetry), "KEYSET_ASYMMETRY");
}

TEST(FindingCode, is_also_any_code_of_an_error) {
  for (const Code code : {Code::kUsage, Code::kInternal, passed_on::kHang}) {
    const FindingCode finding = code;
    EXPECT_EQ(finding, code);
    EXPECT_EQ(name_of(finding), name_of(code));
    EXPECT_EQ(finding_code_named(name_of(code)), finding);
    std::ostringstream text;
    text << finding;
    EXPECT_EQ(text.str(), name_of(code));
  }
  EXPECT_NE(judged::kBitMismatch, Code::kInternal);
  EXPECT_FALSE(finding_code_named("UNKNOWN"));
}

TEST(FindingCode, is_never_an_errors) {
  static_assert(!std::is_convertible_v<FindingCode, Code>);
  static_assert(!std::is_constructible_v<Error, FindingCode, std::string>);
}

}  // namespace
}  // namespace reprise
