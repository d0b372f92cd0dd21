// The scenario language: what is read, and how mistakes are said.

#include "scenarios/driver/scenario.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/contracts/error_of.hpp"

namespace reprise::driver {
namespace {

using contracts::error_of;

const std::string kGood = R"(proves: something
job:
  model: gpt-tiny
  layout: {tp: 2, dp: 2}
  optimizer: {kind: adam, sharding: fully_reshardable}
steps:
  - train: 3
  - save
  - restart: {layout: {tp: 4}}
  - train: 2
expect: {max_delta: 0, against: uninterrupted}
caught: [floor-vs-ceil-chunk]
)";

std::string with(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Scenario, incarnations_are_cut_at_restarts_and_layouts_are_given_whole) {
  const Scenario scenario = parse_scenario(kGood, "a/b/tp2.yaml");
  EXPECT_EQ(scenario.name, "tp2");
  ASSERT_EQ(scenario.incarnations.size(), 2U);
  EXPECT_EQ(to_string(scenario.incarnations[0].layout), "tp2 dp2");
  EXPECT_EQ(to_string(scenario.incarnations[1].layout), "tp4");
  EXPECT_EQ(scenario.incarnations[0].actions.size(), 2U);
  EXPECT_EQ(std::get<TrainAction>(scenario.incarnations[1].actions[0]).steps, 2);
  EXPECT_EQ(scenario.caught, std::vector<std::string>{"floor-vs-ceil-chunk"});
  EXPECT_EQ(scenario.lanes.size(), 3U);
}

TEST(Scenario, a_plain_restart_keeps_the_layout) {
  const auto scenario = parse_scenario(with("restart: {layout: {tp: 4}}", "restart"), "x.yaml");
  EXPECT_EQ(scenario.incarnations[1].layout, scenario.incarnations[0].layout);
}

TEST(Scenario, mistakes_are_refused_with_file_line_and_a_suggestion) {
  struct Row {
    std::string text;
    std::string says;
    std::string place;
  };
  const std::vector<Row> rows = {
      {with("model:", "modle:"), "lacks 'model'", "x.yaml:3"},
      {with("  model: gpt-tiny\n", "  model: gpt-tiny\n  modell: b\n"), "did you mean 'model'",
       "x.yaml:4"},
      {with("  model: gpt-tiny\n", "  model: gpt-tiny\n  model: gpt-tiny\n"), "'model' twice",
       "x.yaml:4"},
      {with("gpt-tiny", "gpt-tyni"), "gpt-tiny", "x.yaml"},
      {with("tp: 2,", "tq: 2,"), "did you mean 'tp'", "x.yaml:4"},
      {with("tp: 2,", "tp: two,"), "whole number", "x.yaml:4"},
      {with("tp: 2,", "tp: 0,"), "from 1 to", "x.yaml:4"},
      {with("kind: adam", "kind: sgd"), "there is: adam", "x.yaml:5"},
      {with("- save", "- sav"), "mapping", "x.yaml:8"},
      {with("- train: 3", "- train: -3"), "from 1 to", "x.yaml:7"},
      {with("- train: 3", "- trian: 3"), "did you mean 'train'", "x.yaml:7"},
      {with("max_delta: 0", "max_delta: 0.1"), "max_delta 0", "x.yaml:11"},
      {with("against: uninterrupted", "against: itself"), "uninterrupted", "x.yaml:11"},
      {with("expect: {max_delta: 0, against: uninterrupted}", "expect: {refused: OOPS}"),
       "no code OOPS", "x.yaml:11"},
      {with("caught:", "lanes: [sim]\ncaught:"), "lanes_reason", "x.yaml"},
      {with("caught:", "lanes: [cpu]\nlanes_reason: r\ncaught:"), "there are: sim, mpi, gpu",
       "x.yaml"},
      {with("  - save\n", ""), "before anything was saved", "x.yaml"},
      {with("  - restart: {layout: {tp: 4}}\n", ""), "never restarts", "x.yaml"},
      {"a: [", "no YAML", "x.yaml:1"},
      {"", "mapping", "x.yaml"},
      {"- a\n- b\n", "mapping", "x.yaml:1"},
  };
  for (const auto& row : rows) {
    const auto error = error_of([&] { parse_scenario(row.text, "x.yaml"); });
    ASSERT_TRUE(error) << row.says;
    EXPECT_EQ(error->code(), Code::kUsage) << error->what();
    EXPECT_NE(std::string(error->what()).find(row.says), std::string::npos)
        << "wanted: " << row.says << "\ngot: " << error->what();
    EXPECT_EQ(error->place().file.substr(0, row.place.size()), row.place) << error->what();
  }
}

TEST(Scenario, every_file_of_the_catalogue_reads_and_says_what_it_proves) {
  for (const auto& file : find_scenarios({REPRISE_SOURCE_DIR "/scenarios"})) {
    const Scenario scenario = read_scenario(file);
    EXPECT_GT(scenario.proves.size(), 20U) << file;
  }
}

}  // namespace
}  // namespace reprise::driver
