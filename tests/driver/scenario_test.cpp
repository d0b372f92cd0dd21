// Tests the scenario language: parsing and error messages.

#include "driver/language/scenario.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "driver/language/catalogue.hpp"
#include "driver/language/scenario_writer.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/temporary_directory.hpp"

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

/// Returns a scenario with a table. The first line is `each:` with the table. Line 8 is the first
/// step, given by `step`.
std::string each(const std::string& table, const std::string& step) {
  return "each: " + table + "\n\n" + with("- train: 3", step);
}

TEST(Scenario, lives_are_cut_at_restarts_and_layouts_are_given_whole) {
  const Scenario scenario = parse_scenario(kGood, "a/b/tp2.yaml");
  EXPECT_EQ(scenario.name, "tp2");
  ASSERT_EQ(scenario.lives.size(), 2U);
  EXPECT_EQ(to_string(scenario.lives[0].layout), "tp2 dp2");
  EXPECT_EQ(to_string(scenario.lives[1].layout), "tp4");
  EXPECT_EQ(scenario.lives[0].actions.size(), 2U);
  EXPECT_EQ(std::get<TrainAction>(scenario.lives[1].actions[0]).steps, 2);
  EXPECT_EQ(scenario.caught, std::vector<std::string>{"floor-vs-ceil-chunk"});
  EXPECT_EQ(scenario.lanes.size(), 3U);
}

TEST(Scenario, a_plain_restart_keeps_the_layout) {
  const auto scenario = parse_scenario(with("restart: {layout: {tp: 4}}", "restart"), "x.yaml");
  EXPECT_EQ(scenario.lives[1].layout, scenario.lives[0].layout);
}

TEST(Scenario, a_layout_may_be_one_text_and_keeps_the_order_before_it) {
  const auto ordered =
      parse_scenario(with("{tp: 2, dp: 2}", "{order: dp-tp, tp: 2, dp: 2}"), "x.yaml");
  EXPECT_EQ(to_string(ordered.lives[1].layout), "tp4 order dp-tp");
  const auto text = parse_scenario(with("{tp: 2, dp: 2}", "tp2 cp2 dp4"), "x.yaml");
  EXPECT_EQ(to_string(text.lives[0].layout), "tp2 cp2 dp4");
}

const std::string kTable = R"(proves: something
each: {save: [tp2, {dp: 3}], k: [0, 2]}
job: {model: gpt-tiny, layout: $save, optimizer: {kind: adam, sharding: fully_reshardable}}
steps: [{train: 1}, save, restart, {train: $k}]
expect: {max_delta: 0}
)";

std::vector<std::string> names_of(const std::vector<Scenario>& scenarios) {
  std::vector<std::string> names;
  for (const auto& scenario : scenarios) names.push_back(scenario.name);
  return names;
}

TEST(Scenario, a_table_of_lists_is_every_combination_the_last_axis_fastest) {
  const auto rows = parse_scenarios(kTable, "a/scenarios/placements/t.yaml");
  EXPECT_EQ(names_of(rows),
            (std::vector<std::string>{"placements/t[save=tp2,k=0]", "placements/t[save=tp2,k=2]",
                                      "placements/t[save=dp3,k=0]", "placements/t[save=dp3,k=2]"}));
  EXPECT_EQ(to_string(rows[2].lives[1].layout), "dp3");
  EXPECT_EQ(std::get<TrainAction>(rows[2].lives[1].actions[0]).steps, 0);
  EXPECT_EQ(std::get<TrainAction>(rows[3].lives[1].actions[0]).steps, 2);
}

TEST(Scenario, a_table_of_rows_is_these_rows) {
  std::string text = kTable;
  const std::string product = "{save: [tp2, {dp: 3}], k: [0, 2]}";
  text.replace(text.find(product), product.size(),
               "[{save: tp2, k: 2}, {save: {dp: 3, order: dp-tp}, k: 0}]");
  EXPECT_EQ(names_of(parse_scenarios(text, "t.yaml")),
            (std::vector<std::string>{"t[save=tp2,k=2]", "t[save=dp3-order.dp-tp,k=0]"}));
}

TEST(Scenario, what_is_written_is_read_again) {
  Scenario scenario = parse_scenario(
      with("{tp: 2, dp: 2}", "{tp: 2, dp: 4, pp: 2, dp_replicate: 2, stage_layers: [2, 0]}"),
      "x.yaml");
  scenario.name = "regress/a b: \"c\"";
  scenario.tags = {"core"};
  scenario.seed = 77;
  scenario.shard_dim = 1;
  scenario.ranks_per_node = 4;
  scenario.checkpoint.strictness = Strictness::kReturnAll;
  scenario.checkpoint.store = {.exchange = false, .renames = false, .lists_lag = true};
  scenario.lives[1].actions.insert(scenario.lives[1].actions.begin(),
                                   {SaveAction{}, LoadAction{}, TrainAction{0}});
  scenario.lives[1].optimizer_sharding = sim::Sharding::kFsdpDtensor;
  scenario.expect = {Code::kShapeDrift, "says: 'this'", 12, false};
  scenario.lanes = {LaneKind::kSim};
  scenario.lanes_reason = "needs # a reason";
  scenario.recorded = Recorded{"fail",
                               "WRONG_OWNER",
                               RecordedDifference{1, "w", {0, 7}, "1 (0x1)", "2 (0x2)"},
                               "00ff",
                               "abc+",
                               "Release",
                               "floor-vs-ceil-chunk",
                               9};
  const std::string text = to_yaml(scenario);
  EXPECT_EQ(parse_scenario(text, "x.yaml"), scenario) << text;
  EXPECT_EQ(to_yaml(parse_scenario(text, "x.yaml")), text);
}

TEST(Scenario, all_of_the_catalogue_is_read_again_when_it_is_written) {
  for (auto scenario : read_catalogue({{REPRISE_SOURCE_DIR "/scenarios"}, ""})) {
    scenario.row.clear();
    EXPECT_EQ(parse_scenario(to_yaml(scenario), scenario.file), scenario) << to_yaml(scenario);
  }
}

TEST(Scenario, a_record_replaces_the_old_one_and_keeps_the_rest_of_the_file) {
  const Recorded one{"fail", "BIT_MISMATCH", {}, "aa", "c", "b", "", 1};
  const Recorded two{"pass", "", {}, "bb", "c", "b", "", 2};
  const std::string text = "# why\n" + kGood;
  const std::string once = with_record(text, one);
  EXPECT_EQ(once.substr(0, text.size()), text);
  EXPECT_EQ(parse_scenario(once, "x.yaml").recorded, one);
  EXPECT_EQ(with_record(once, two), with_record(text, two));
}

TEST(Catalogue, names_are_paths_below_the_catalogue) {
  EXPECT_EQ(name_of_file("/x/scenarios/placements/a.yaml"), "placements/a");
  EXPECT_EQ(name_of_file("scenarios/a.yaml"), "a");
  EXPECT_EQ(name_of_file("elsewhere/a.yaml"), "a");
}

TEST(Catalogue, rows_are_chosen_by_their_cells) {
  const contracts::TemporaryDirectory directory;
  const std::string file = directory.path() + "/t.yaml";
  std::ofstream(file) << kTable;
  EXPECT_EQ(names_of(read_catalogue({{file + "[k=2]"}, ""})),
            (std::vector<std::string>{"t[save=tp2,k=2]", "t[save=dp3,k=2]"}));
  EXPECT_EQ(names_of(read_catalogue({{file + "[k=2,save=dp3]"}, ""})),
            std::vector<std::string>{"t[save=dp3,k=2]"});
  const auto error = error_of([&] { read_catalogue({{file + "[k=7]"}, ""}); });
  ASSERT_TRUE(error);
  EXPECT_NE(std::string(error->what()).find("available: k=0, k=2"), std::string::npos)
      << error->what();
  EXPECT_TRUE(error_of([&] { read_catalogue({{file}, "core"}); })) << "no such tag";
}

TEST(Catalogue, what_once_failed_is_run_first) {
  const contracts::TemporaryDirectory directory;
  for (const char* name : {"a", "regress", "z"}) {
    std::filesystem::create_directories(directory.path() + "/" + name);
    std::ofstream(directory.path() + "/" + name + "/s.yaml") << kGood;
  }
  const auto files = find_scenarios({directory.path()});
  ASSERT_EQ(files.size(), 3U);
  EXPECT_NE(files[0].find("/regress/"), std::string::npos);
  EXPECT_NE(files[1].find("/a/"), std::string::npos);
}

TEST(Scenario, mistakes_are_refused_with_file_line_and_a_suggestion) {
  struct Row {
    std::string text;
    std::string says;
    std::string place;
  };
  const std::vector<Row> rows = {
      {with("model:", "modle:"), "did you mean 'model'", "x.yaml:3"},
      {with("  model: gpt-tiny\n", "  model: gpt-tiny\n  modell: b\n"), "did you mean 'model'",
       "x.yaml:4"},
      {with("  model: gpt-tiny\n", "  model: gpt-tiny\n  model: gpt-tiny\n"), "'model' twice",
       "x.yaml:4"},
      {with("gpt-tiny", "gpt-tyni"), "gpt-tiny", "x.yaml"},
      {with("tp: 2,", "tq: 2,"), "did you mean 'tp'", "x.yaml:4"},
      {with("tp: 2,", "tp: two,"), "whole number", "x.yaml:4"},
      {with("tp: 2,", "tp: 0,"), "from 1 to", "x.yaml:4"},
      {with("kind: adam", "kind: sgd"), "available: adam", "x.yaml:5"},
      {with("- save", "- sav"), "did you mean 'save'?", "x.yaml:8"},
      {with("- train: 3", "- train: -3"), "from 0 to", "x.yaml:7"},
      {with("- train: 3", "- trian: 3"), "did you mean 'train'", "x.yaml:7"},
      {with("max_delta: 0", "max_delta: 0.1"), "max_delta 0", "x.yaml:11"},
      {with("against: uninterrupted", "against: itself"), "uninterrupted", "x.yaml:11"},
      {with("expect: {max_delta: 0, against: uninterrupted}", "expect: {refused: OOPS}"),
       "unknown code OOPS", "x.yaml:11"},
      {with("caught:", "lanes: [sim]\ncaught:"), "lanes_reason", "x.yaml"},
      {with("caught:", "checkpoint: {store: {renames: false}}\ncaught:"), "needs lanes: [sim]",
       "x.yaml"},
      {with("[floor-vs-ceil-chunk]", "[nosuch]"), "there is no mutant 'nosuch'", "x.yaml"},
      {with("[floor-vs-ceil-chunk]", "[floor-vs-ceil-chunk, floor-vs-ceil-chunk]"), "twice",
       "x.yaml"},
      {with("caught:", "lanes: [cpu]\nlanes_reason: r\ncaught:"), "did you mean 'gpu'?", "x.yaml"},
      {with("  - save\n", ""), "before anything has been saved", "x.yaml"},
      {with("  - restart: {layout: {tp: 4}}\n", ""), "never restarts", "x.yaml"},
      {with("  - save\n", "  - load\n  - save\n"), "loads before", "x.yaml"},
      {with("{tp: 2, dp: 2}", "{tp: 2, ep: 3}"), "impossible layout", "x.yaml:4"},
      {with("{tp: 2, dp: 2}", "tp2 dq2"), "impossible layout", "x.yaml:4"},
      {with("sharding: fully_reshardable", "sharding: sharded"), "available: fully", "x.yaml:5"},
      {with("  layout:", "  nodes: 3\n  layout:"), "evenly on 3 nodes", "x.yaml:4"},
      {with("max_delta: 0,", "ranks_own: none,"), "has the unknown value 'none' under 'ranks_own'",
       "x.yaml:11"},
      {with("max_delta: 0,", "refused_says: x,"), "does not expect one", "x.yaml:11"},
      {with("- train: 3", "- train: $k"), "has no 'each'", "x.yaml:7"},
      {each("{k: [1, 2]}", "- train: $j"), "does not name; it names: k", "x.yaml:9"},
      {each("{steps: [1, 2]}", "- train: $step"), "did you mean '$steps'", "x.yaml:9"},
      {each("{k: [1], j: [2]}", "- train: $k"), "'j' that nothing uses", "x.yaml:1"},
      {each("{k: [1, x]}", "- train: $k"), "whole number", "x.yaml:1"},
      {each("{k: []}", "- train: $k"), "list of values for 'k'", "x.yaml:1"},
      {each("{k: [1, 1]}", "- train: $k"), "[k=1] twice", "x.yaml:1"},
      {each("[{k: 1}, {j: 1}]", "- train: $k"), "other names", "x.yaml:1"},
      {each("{k: [$k]}", "- train: $k"), "not another axis", "x.yaml:1"},
      {each("3", "- train: $k"), "needs a mapping", "x.yaml:1"},
      {each("{k: [&a [*a]]}", "- train: $k"), "aliases", "x.yaml:1"},
      {with("gpt-tiny", "\xff"), "not UTF-8", "x.yaml:3"},
      {with("gpt-tiny", "\xed\xa0\x80"), "not UTF-8", "x.yaml:3"},
      {"a: [", "not valid YAML", "x.yaml:1"},
      {"", "the file is empty", "x.yaml"},
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

TEST(Scenario, a_job_too_large_for_memory_is_refused_with_its_size) {
  struct Row {
    const char* model;
    const char* layout;
    const char* size;
  };
  for (const Row& row : {Row{"llama3-8b", "{tp: 2, dp: 2}", "119.66 GiB"},
                         Row{"llama3-405b", "tp8 pp2", "TiB"}, Row{"deepseek-v3", "ep8 dp8", "TiB"},
                         Row{"gpt3-175b", "tp8", "TiB"}, Row{"mixtral-8x7b", "ep8 dp8", "GiB"}}) {
    std::string text = with("{tp: 2, dp: 2}", row.layout);
    text.replace(text.find("gpt-tiny"), 8, row.model);
    const auto error = error_of([&] { parse_scenario(text, "f.yaml"); });
    ASSERT_TRUE(error) << row.model;
    EXPECT_NE(std::string(error->what()).find("ranks hold at least"), std::string::npos)
        << error->what();
    EXPECT_NE(std::string(error->what()).find(row.size), std::string::npos) << error->what();
  }
}

TEST(Scenario, every_file_of_the_catalogue_reads_and_says_what_it_proves) {
  for (const auto& scenario : read_catalogue({{REPRISE_SOURCE_DIR "/scenarios"}, ""})) {
    EXPECT_GT(scenario.proves.size(), 20U) << scenario.file;
  }
}

}  // namespace
}  // namespace reprise::driver
