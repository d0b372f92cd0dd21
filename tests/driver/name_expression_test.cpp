#include "driver/language/name_expression.hpp"

#include <gtest/gtest.h>

#include "tests/contracts/error_of.hpp"

namespace reprise::driver {
namespace {

using contracts::error_of;
using Names = std::vector<std::string>;

const Names kNames = {"placements/ep2", "placements/moe[k=1,save=ep2]", "mimo/layouts[k=1]",
                      "rerun/persistent"};

Names selected_by(const std::string& text) {
  const NameExpression expression(text);
  Names selected;
  for (const auto& name : kNames) {
    if (expression.holds_for(name)) selected.push_back(name);
  }
  return selected;
}

TEST(NameExpression, not_binds_closest_then_and_then_or) {
  struct Row {
    std::string text;
    Names selects;
  };
  const std::vector<Row> rows = {
      {"ep2", {kNames[0], kNames[1]}},
      {"EP2 and Moe", {kNames[1]}},
      {"not ep2", {kNames[2], kNames[3]}},
      {"not ep2 and mimo", {kNames[2]}},
      {"mimo or ep2 and moe", {kNames[1], kNames[2]}},
      {"(mimo or ep2) and k=1", {kNames[1], kNames[2]}},
      {"not (mimo or ep2)", {kNames[3]}},
      {"not not rerun", {kNames[3]}},
      {"[k=1,", {kNames[1]}},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(selected_by(row.text), row.selects) << row.text;
  }
}

TEST(NameExpression, what_is_no_expression_is_refused_with_its_place) {
  struct Row {
    std::string text;
    std::string says;
  };
  const std::vector<Row> rows = {
      {"", "ends where a part of a name is missing, at character 1"},
      {"ep2 and", "ends where a part of a name is missing, at character 8"},
      {"and ep2", "has 'and' where a part of a name is missing, at character 1"},
      {"(ep2", "lacks a ')', at character 5"},
      {"ep2)", "has ')' after the end of the expression, at character 4"},
      {"ep2 moe", "has 'moe' after the end of the expression, at character 5"},
      {"()", "has ')' where a part of a name is missing, at character 2"},
      {std::string(1000, '('), "nested too deeply"},
  };
  for (const auto& row : rows) {
    const auto error = error_of([&row] { NameExpression{row.text}; });
    ASSERT_TRUE(error) << row.text;
    EXPECT_EQ(error->code(), Code::kUsage);
    EXPECT_NE(error->message().find(row.says), std::string::npos) << error->message();
  }
}

TEST(NameExpression, what_selects_nothing_is_explained_by_names_near_its_words) {
  const std::string misspelt = NameExpression("placemnts and ep2").explain_no_match(kNames);
  EXPECT_NE(
      misspelt.find("selects nothing out of 4 scenarios; no name has 'placemnts', the nearest are: "
                    "placements, "),
      std::string::npos)
      << misspelt;
  EXPECT_EQ(misspelt.find("'ep2'"), std::string::npos) << "some name has it: " << misspelt;
  const std::string far = NameExpression("zebra").explain_no_match({"a[nth=0]"});
  EXPECT_EQ(far, "-k 'zebra' selects nothing out of 1 scenario; no name has 'zebra'");
  const std::string apart = NameExpression("mimo and rerun").explain_no_match(kNames);
  EXPECT_NE(apart.find("names with one of its words: mimo/layouts[k=1], rerun/persistent"),
            std::string::npos)
      << apart;
}

}  // namespace
}  // namespace reprise::driver
