// Tests that all independent mistakes of a scenario file are found at once, and no other ones.

#include "driver/yaml/mistakes.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "driver/language/catalogue.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/not_root.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::driver {
namespace {

using contracts::error_of;
using contracts::TemporaryDirectory;

std::vector<Mistake> mistakes_in(const std::string& text) {
  Mistakes mistakes;
  const auto scenarios = parse_scenarios(text, "m.yaml", "", mistakes);
  EXPECT_EQ(scenarios.empty(), !mistakes.empty());
  return mistakes.sorted();
}

std::vector<std::string> told(const std::string& text) {
  std::vector<std::string> lines;
  for (const auto& mistake : mistakes_in(text)) {
    lines.push_back(mistake.place() + ": " + mistake.message);
  }
  return lines;
}

const std::string kManyMistakes = R"(prooves: something
job:
  model: gpt-tiny
  layout: {tp: two, dp: 2}
  optimizer: {kind: adam, sharding: fully_reshardible, dims: 1}
  sead: 7
checkpoint: {strictness: sloppy, keep: none, checksums: verifyed}
steps:
  - trian: 3
  - save: {no_optim: perhaps}
  - fault: {kind: crash, rank: 9, moment: soon}
  - restart: {layout: {tp: 4}, rerrun: off}
  - train: []
expect: {max_delta: 1, agains: uninterrupted, loaded_step: x}
caught: [no-such-mutant]
lanes: [sim, moon]
)";

TEST(Mistakes, every_independent_one_is_found_with_line_and_column) {
  const auto lines = told(kManyMistakes);
  const std::vector<std::string> wanted = {
      "m.yaml:1:1: the scenario has the unknown key 'prooves'; did you mean 'proves', which it",
      "m.yaml:4:16: layout needs a whole number under 'tp', not 'two'",
      "m.yaml:5:37: optimizer has the unknown sharding 'fully_reshardible'",
      "m.yaml:5:56: optimizer has the unknown key 'dims'; did you mean 'dim'?",
      "m.yaml:6:3: job has the unknown key 'sead'; did you mean 'seed'?",
      "m.yaml:7:26: checkpoint has the unknown strict mode sloppy",
      "m.yaml:7:40: checkpoint needs a whole number under 'keep', not 'none'",
      "m.yaml:7:57: checkpoint has the unknown value 'verifyed' under 'checksums'; did you mean "
      "'verified'?",
      "m.yaml:9:5: step 1 has the unknown key 'trian'; did you mean 'train'?",
      "m.yaml:10:22: save needs true or false under 'no_optim', not 'perhaps'",
      "m.yaml:11:43: fault has the unknown value 'soon' under 'moment'",
      "m.yaml:12:32: restart has the unknown key 'rerrun'; did you mean 'rerun'?",
      "m.yaml:13:12: train must be a mapping",
      "m.yaml:14:21: expect needs max_delta 0",
      "m.yaml:14:24: expect has the unknown key 'agains'; did you mean 'against'?",
      "m.yaml:14:60: expect needs a whole number under 'loaded_step', not 'x'",
      "m.yaml:15:9: the scenario names an unknown mutant under 'caught'",
      "m.yaml:16:8: the scenario has the unknown value 'moon' under 'lanes'",
  };
  for (std::size_t i = 0; i < std::max(lines.size(), wanted.size()); ++i) {
    const std::string line = i < lines.size() ? lines[i] : "";
    EXPECT_TRUE(i < wanted.size() && line.starts_with(wanted[i]))
        << i << ": " << line << "\nwanted: " << (i < wanted.size() ? wanted[i] : "no more");
  }
}

const std::string kRight = R"(proves: something
job: {model: gpt-tiny, layout: tp2 dp2, optimizer: {kind: adam}}
steps: [{train: 1}, save, restart, {train: 1}]
expect: {max_delta: 0}
)";

std::string instead(const std::string& from, const std::string& to, std::string text = kRight) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Mistakes, of_a_right_file_there_are_none) { EXPECT_TRUE(told(kRight).empty()); }

TEST(Mistakes, every_field_and_element_is_checked_despite_earlier_mistakes) {
  struct Row {
    std::string text;
    std::vector<std::string> says;  ///< in the order of their places
  };
  const auto with_step = [](const std::string& step) {
    return instead("save, restart", "save, {" + step + "}, restart");
  };
  const std::string no_model = instead("gpt-tiny", "gtp-tiny");
  const std::vector<Row> rows = {
      {"caught: [expert-marked-replicate, lazy, post]\n" + kRight, {"'lazy'", "'post'"}},
      {"caught: [$a, lazy, {b: c}, post]\n" + kRight,
       {"'lazy'", "'post'", "says $a", "of strings"}},
      {with_step("train: {steps: a, save_interval: b, c: d}"),
       {"'steps', not 'a'", "'save_interval', not 'b'", "unknown key 'c'"}},
      {with_step("train: {save_interval: b}"), {"lacks 'steps'", "'save_interval', not 'b'"}},
      {with_step("fault: {kind: crsh, rank: x, phase: zz}"), {"'crsh'", "not 'x'", "'zz'"}},
      {with_step("damage: {what: payloda, bit: 9}"), {"'payloda'", "bit from 0 to 7"}},
      {with_step("bad_result: {kind: x, ranks: [a, b], value: c}"),
       {"'x' under 'kind'", "not 'a'", "not 'b'", "'c' under 'value'"}},
      {with_step("save: {fails: X, async: z}"), {"unknown code X", "'async', not 'z'"}},
      {with_step("exits: {code: x, saves: z}"), {"not 'x'", "not 'z'"}},
      {with_step("restart: {layout: {tp: 0, stage_layers: [a, b]}, lacks: [x, y], adds: [a/b, c]}"),
       {"tp from 1", "'stage_layers'", "'stage_layers'", "group 'x'", "group 'y'"}},
      {instead("steps: [{train: 1}, save, restart, {train: 1}]\n", "", no_model),
       {"needs a list under 'steps'", "unknown model"}},
      {instead("restart", "{restart: {layout: {tp: 0}}}", no_model),
       {"unknown model", "tp from 1"}},
      {instead("adam}", "adm}, schedule: {lr_decay_steps: 1, x: 2}"),
       {"did you mean 'adam'?", "unknown key 'x'"}},
      {instead("{max_delta: 0}",
               "{max_delta: 1, against: x, ranks_own: y, learning_rates: {a: 1, "
               "b: 2}}"),
       {"needs max_delta 0", "'x' under 'against'", "'y' under 'ranks_own'", "rates", "rates"}},
      {kRight + "recorded: {verdict: [], first_difference: {index: [a, b], key: k, c: 1}}\n",
       {"under 'verdict'", "lacks 'saved'", "lacks 'loaded'", "not 'a'", "not 'b'", "key 'c'"}},
      {"proves: x\nsteps: [sav, 7]\n",
       {"lacks 'job'", "lacks 'expect'", "did you mean 'save'?", "step 2 '7'"}},
  };
  for (const auto& row : rows) {
    const auto lines = told(row.text);
    EXPECT_EQ(lines.size(), row.says.size()) << row.text << ::testing::PrintToString(lines);
    for (std::size_t i = 0; i < std::min(lines.size(), row.says.size()); ++i) {
      EXPECT_NE(lines[i].find(row.says[i]), std::string::npos) << lines[i] << '\n' << row.says[i];
    }
  }
}

TEST(Mistakes, a_file_name_that_is_not_utf8_is_one) {
  Mistakes mistakes;
  EXPECT_TRUE(parse_scenarios(kRight, "b\xff.yaml", "", mistakes).empty());
  ASSERT_EQ(mistakes.sorted().size(), 1U);
  EXPECT_NE(mistakes.sorted()[0].message.find("rename the file"), std::string::npos);
}

// With another layout, rank 3 might be a member, and nothing might be missing.
TEST(Mistakes, what_may_follow_from_another_mistake_is_not_told) {
  struct Row {
    std::string from;
    std::string to;
    std::string says;  ///< the only mistake
  };
  const std::string fault = ", {fault: {kind: crash, rank: 7, phase: commit}}, save, restart";
  const std::vector<Row> rows = {
      {"layout: tp2 dp2, optimizer: {kind: adam}}\nsteps: [{train: 1}, save",
       "layout: {tp: x}, optimizer: {kind: adam}}\nsteps: [{train: 1}, save" + fault,
       "'tp', not 'x'"},
      {"layout: tp2 dp2", "layout: {tp: x, dp: 3}, nodes: 2", "'tp', not 'x'"},
      {"save, restart", "save, {restrat: {layout: tp4 dp2}}" + fault, "unknown key 'restrat'"},
      {"save, ", "{savee: {}}, ", "unknown key 'savee'"},
      {"model: gpt-tiny", "model: gtp-tiny", "unknown model"},
  };
  for (const auto& row : rows) {
    const auto lines = told(instead(row.from, row.to));
    ASSERT_EQ(lines.size(), 1U) << row.to << '\n' << ::testing::PrintToString(lines);
    EXPECT_NE(lines.front().find(row.says), std::string::npos) << lines.front();
  }
}

TEST(Mistakes, of_a_table_are_told_once_however_many_rows_have_them) {
  const std::string table = "each: {k: [0, 1, two], n: [1, 2]}\n" +
                            instead("{train: 1}, save", "{train: $k}, {train: $n}, sav");
  const auto lines = told(table);
  ASSERT_EQ(lines.size(), 2U) << ::testing::PrintToString(lines);
  EXPECT_TRUE(lines[0].starts_with("m.yaml:1:18: step 1 needs a whole number")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with("m.yaml:4:")) << lines[1];
  EXPECT_NE(lines[1].find("'sav'"), std::string::npos) << lines[1];
}

TEST(Mistakes, a_tab_an_empty_file_and_a_second_document_are_named) {
  struct Row {
    std::string text;
    std::string says;
  };
  const std::vector<Row> rows = {
      {"", "m.yaml: the file is empty"},
      {"# only a comment\n\n---\n", "m.yaml: the file is empty"},
      {kRight + "---\n" + kRight, "m.yaml:5:1: a second YAML document begins here"},
      {kRight + "---\n", "m.yaml:5:1: a second YAML document begins here"},
      {kRight + "...\nmore: 1\n", "m.yaml:6:1: a second YAML document begins here"},
      {"proves: x\njob:\n\tmodel: gpt-tiny\n", "m.yaml:3:1: the line is indented with a tab"},
      {"proves: x\nsteps:\n  \t- save\n", "m.yaml:3:3: the line is indented with a tab"},
      {"proves: [x\n", "m.yaml:2:1: not valid YAML: "},
  };
  for (const auto& row : rows) {
    const auto lines = told(row.text);
    ASSERT_EQ(lines.size(), 1U) << row.text << ::testing::PrintToString(lines);
    EXPECT_TRUE(lines.front().starts_with(row.says)) << lines.front() << '\n' << row.says;
  }
  for (const std::string& around : {"# c\n---\n" + kRight, "%YAML 1.2\n---\n" + kRight,
                                    kRight + "...\n", kRight + "# --- \n"}) {
    EXPECT_TRUE(told(around).empty()) << around << ::testing::PrintToString(told(around));
  }
}

TEST(Mistakes, without_a_list_the_first_is_thrown) {
  const auto error = error_of([] { parse_scenarios(kManyMistakes, "m.yaml"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->place().file, "m.yaml:1:1") << error->what();
}

TEST(Mistakes, are_shown_with_their_line_and_a_mark_below_the_place) {
  const Mistake mistake{"m.yaml", 1, 4, "is wrong"};
  EXPECT_EQ(shown(mistake, "a\n  \xc3\xa9\tb: 1\r\n"),
            "m.yaml:2:5: is wrong\n"
            "  2 |   \xc3\xa9 b: 1\n"
            "    |    ^\n");
  EXPECT_EQ(shown({"m.yaml", -1, -1, "the file is empty"}, "x"), "m.yaml: the file is empty\n");
  const std::string wide = std::string(300, 'a') + "x" + std::string(300, 'b');
  const std::string cut = shown({"m.yaml", 0, 300, "is wide"}, wide);
  const auto mark = cut.find('^') - cut.rfind('\n', cut.find('^'));
  const auto line = cut.find('\n') + 1;
  EXPECT_EQ(cut[line + mark - 1], 'x') << cut;
  EXPECT_LT(cut.size(), 400U);
}

TEST(Catalogue, every_bad_file_is_told_and_the_good_ones_are_read) {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() + "/good.yaml") << kRight;
  std::ofstream(directory.path() + "/bad.yaml") << kManyMistakes;
  std::ofstream(directory.path() + "/empty.yaml") << "";
  const Catalogue read = read_files({.paths = {directory.path(), "nowhere.yaml"}});
  EXPECT_EQ(read.files, 4U);
  ASSERT_EQ(read.scenarios.size(), 1U);
  EXPECT_EQ(read.scenarios[0].name, "good");
  ASSERT_EQ(read.unreadable.size(), 3U);
  EXPECT_EQ(read.unreadable[0].mistakes.size(), 18U);
  EXPECT_NE(read.unreadable[0].reason().find("bad.yaml:1:1: the scenario has the unknown key"),
            std::string::npos);
  EXPECT_NE(read.unreadable[0].reason().find("(and 17 more)"), std::string::npos);
  EXPECT_NE(shown(read.unreadable[1]).find("empty.yaml: the file is empty"), std::string::npos);
  EXPECT_EQ(read.unreadable[2].file, "nowhere.yaml");
  EXPECT_TRUE(error_of([&] { read_catalogue({.paths = {directory.path()}}); }));
}

TEST(Catalogue, a_file_that_cannot_be_read_is_told_with_the_cause) {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/locked.yaml";
  std::ofstream(file) << kRight;
  std::filesystem::permissions(file, std::filesystem::perms::none);
  const contracts::NotRoot not_root;
  const Catalogue read = read_files({.paths = {file}});
  ASSERT_EQ(read.unreadable.size(), 1U);
  EXPECT_EQ(read.unreadable[0].reason(), file + ": can't be read: Permission denied");
}

std::vector<std::string> names_of(const Selection& selection) {
  std::vector<std::string> names;
  for (const auto& scenario : read_catalogue(selection)) names.push_back(scenario.name);
  return names;
}

TEST(Catalogue, names_and_tags_select_and_rows_are_drawn_from_the_selected) {
  const TemporaryDirectory directory;
  const auto write = [&](const std::string& name, const std::string& head) {
    std::ofstream(directory.path() + "/" + name) << head << kRight;
  };
  write("a.yaml", "tags: [quick, odd]\n");
  write("b.yaml", "tags: [quick]\n");
  std::ofstream(directory.path() + "/t.yaml") << "each: {k: [1, 2, 3, 4]}\n"
                                              << instead("{train: 1}, save", "{train: $k}, save");
  const std::vector<std::string> paths = {directory.path()};
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_of({.paths = paths, .names = "k=2 or k=3"}), (Names{"t[k=2]", "t[k=3]"}));
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    EXPECT_EQ(names_of({.paths = paths, .rows_max = 1, .seed = seed, .names = "k=2"}),
              Names{"t[k=2]"});
  }
  EXPECT_EQ(names_of({.paths = paths, .tag = "quick", .not_tags = {"odd"}}), Names{"b"});
}

TEST(Catalogue, a_selection_of_nothing_is_usage_and_says_what_is_near) {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() + "/tensor.yaml") << "tags: [quick]\n" << kRight;
  const std::vector<std::string> paths = {directory.path()};
  struct Row {
    Selection selection;
    std::string says;
  };
  const std::vector<Row> rows = {
      {{.paths = paths, .names = "tenser"}, "the nearest are: tensor"},
      {{.paths = paths, .tag = "quik"}, "the tags are: quick"},
      {{.paths = paths, .not_tags = {"quik"}}, "the tags are: quick"},
      {{.paths = paths, .not_tags = {"quick"}}, "leaves out everything"},
      {{.paths = paths, .names = "not tensor"}, "names with one of its words: tensor"},
  };
  for (const auto& row : rows) {
    const auto error = error_of([&row] { read_files(row.selection); });
    ASSERT_TRUE(error) << row.says;
    EXPECT_EQ(error->code(), Code::kUsage);
    EXPECT_NE(error->message().find(row.says), std::string::npos) << error->message();
  }
}

}  // namespace
}  // namespace reprise::driver
