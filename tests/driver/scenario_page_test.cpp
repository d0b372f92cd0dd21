// Holds docs/scenarios.md against the keys that a scenario file may have.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "driver/language/scenario.hpp"
#include "driver/yaml/mistakes.hpp"

namespace reprise::driver {
namespace {

using Words = std::set<std::string>;

Words words_of(const std::string& text) {
  const std::regex word("[a-z_]+");
  Words words;
  for (std::sregex_iterator at(text.begin(), text.end(), word), end; at != end; ++at) {
    words.insert(at->str());
  }
  return words;
}

/// Returns the keys that a mapping may have, from what the reader says of an unknown key.
Words keys_of(const std::string& text) {
  const std::string list = "it may have: ";
  Mistakes mistakes;
  parse_scenarios(text, "page.yaml", "", mistakes);
  for (const auto& mistake : mistakes.sorted()) {
    const auto at = mistake.message.find(list);
    if (at != std::string::npos) return words_of(mistake.message.substr(at + list.size()));
  }
  return {};
}

std::string scenario_with(const std::string& job, const std::string& checkpoint,
                          const std::string& step, const std::string& expect) {
  return "proves: something\njob: {model: gpt-tiny, layout: tp1, optimizer: {kind: adam}" + job +
         "}\ncheckpoint: {" + checkpoint + "}\nsteps:\n  - save\n  - " + step +
         "\n  - restart\nexpect: {" + expect + "}\n";
}

/// The words in code of the page's lines that begin with `begin`, or of all its lines.
Words words_on_page(const std::string& begin) {
  std::ifstream page(REPRISE_SOURCE_DIR "/docs/scenarios.md");
  const std::regex code("`[^`]*`");
  Words words;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with(begin)) continue;
    for (std::sregex_iterator at(line.begin(), line.end(), code), end; at != end; ++at) {
      words.merge(words_of(at->str()));
    }
  }
  return words;
}

void expect_on_page(const Words& keys, const std::string& begin) {
  const Words told = words_on_page(begin);
  EXPECT_FALSE(keys.empty()) << begin;
  for (const auto& key : keys) EXPECT_TRUE(told.contains(key)) << "'" << key << "' in " << begin;
}

TEST(ScenarioPage, names_every_key_of_the_job_and_its_checkpoints) {
  expect_on_page(keys_of(scenario_with(", zzzz: 1", "", "save", "")), "|");
  expect_on_page(keys_of(scenario_with(", schedule: {zzzz: 1}", "", "save", "")), "| `schedule`");
  expect_on_page(keys_of(scenario_with("", "zzzz: 1", "save", "")), "|");
  expect_on_page(keys_of(scenario_with("", "store: {zzzz: 1}", "save", "")), "| `store: {");
  expect_on_page(keys_of(scenario_with("", "", "save", "zzzz: 1")), "|");
}

TEST(ScenarioPage, names_every_key_of_a_step_in_its_line) {
  for (const std::string step : {"save", "bad_result", "fault", "damage", "reshard", "diff"}) {
    const std::string begin = step == "save" ? "| `save`, `save: {" : "| `" + step + ": {";
    expect_on_page(keys_of(scenario_with("", "", step + ": {kind: crash, zzzz: 1}", "")), begin);
  }
  expect_on_page(keys_of(scenario_with("", "", "train: {steps: 1, zzzz: 1}", "")), "| `train: {");
  expect_on_page(keys_of(scenario_with("", "", "exits: {code: 1, zzzz: 1}", "")), "| `exits: ");
  expect_on_page(keys_of(scenario_with("", "", "restart: {zzzz: 1}", "")), "|");
  const auto command = keys_of(scenario_with("", "", "incarnation: {command: [x], zzzz: 1}", ""));
  expect_on_page(command, "| `incarnation: {");
}

}  // namespace
}  // namespace reprise::driver
