// Runs what the pages tell a reader to type: the shell lines of README.md, those of the recipes in
// ci/ on a small job, ci/gate.sh on a small catalogue, and the command line by which the gate says
// that a report is made full.

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test::recipes_test {
namespace {

namespace fs = std::filesystem;

const fs::path kTree = REPRISE_SOURCE_DIR;

/// A line of shell in a recipe.
struct Line {
  std::string text;
  bool always = false;  ///< runs also after one that failed
};

/// Adds every text under the keys `run` and `script`, wherever they stand.
void add_lines(const YAML::Node& node, std::vector<Line>& lines) {
  for (const auto& entry : node) {
    if (!node.IsMap()) {
      add_lines(entry, lines);
      continue;
    }
    const auto key = entry.first.as<std::string>();
    const YAML::Node& value = entry.second;
    if (key == "run" && value.IsScalar()) {
      lines.push_back({value.as<std::string>(), node["if"].as<std::string>("") == "always()"});
    } else if (key == "script") {
      for (const auto& line : value) lines.push_back({line.as<std::string>()});
    } else if (!value.IsScalar()) {
      add_lines(value, lines);
    }
  }
}

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

struct Said {
  int exit_code = -1;
  std::string text;
};

/// Runs a line in a folder as a runner does, but not in the variables of this one.
Said shell_in(const fs::path& folder, const std::string& line, const std::string& variables) {
  write(folder / "line", line + "\n");
  const std::string command =
      "cd '" + folder.string() +
      "' && env -u CI -u GITHUB_ACTIONS GITHUB_STEP_SUMMARY=\"$PWD/page.md\" " + variables +
      " bash -eo pipefail line >said 2>&1";
  const int status = std::system(command.c_str());  // NOLINT: the words are this test's own
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128,
          .text = text_of(folder / "said")};
}

/// Makes a wheel in the folder that installs its file `program` as reprise. Returns its name, or
/// nothing where Python makes no environments.
std::string wheel_in(const fs::path& folder) {
  write(
      folder / "wheel.py",
      "import zipfile\n"
      "info = 'reprise-0.dist-info/'\n"
      "with zipfile.ZipFile('reprise-0-py3-none-any.whl', 'w') as wheel:\n"
      "    wheel.write('program', 'reprise-0.data/scripts/reprise')\n"
      "    wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: reprise\\nVersion: "
      "0\\n')\n"
      "    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: "
      "py3-none-any\\n')\n"
      "    wheel.writestr(info + 'RECORD', 'reprise-0.data/scripts/reprise,,\\n' + ''.join(info + "
      "name + ',,\\n' for name in ('METADATA', 'WHEEL', 'RECORD')))\n");
  const Said made = shell_in(
      folder, "python3 -m venv --help && python3 -c 'import ensurepip' && python3 wheel.py", "");
  return made.exit_code == 0 ? "reprise-0-py3-none-any.whl" : "";
}

/// A repository with a training command, in which a recipe of ci/ was copied, and an environment
/// for its lines. The program allows a build from a tree with uncommitted changes.
class Recipes : public testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() {
    tree_ = new contracts::TemporaryDirectory;  // NOLINT: removed in TearDownTestSuite
    write(at("program"),
          "#!/bin/sh\n[ \"$1\" != gate ] || set -- \"$@\" --allow-dirty\nexec '" REPRISE_EXE
          "' \"$@\"\n");
    fs::permissions(at("program"), fs::perms::owner_all);
    wheel_ = wheel_in(tree_->path());
    if (!wheel_.empty()) shell_in(tree_->path(), "python3 -m venv env", "");
  }
  static void TearDownTestSuite() {
    delete tree_;  // NOLINT
    tree_ = nullptr;
  }
  void SetUp() override {
    if (wheel_.empty()) GTEST_SKIP() << "no python3 with venv";
    fs::remove_all(at("job"));
    write(at("job/requirements.txt"), "");
  }

  /// Runs the lines of the recipe as a runner does, with a job that has the defect.
  static Said run(const std::string& defect, const std::string& gate = "") {
    std::string job = text_of(kTree / "tests/driver/watch/fake_job.py");
    const std::string none = "\"--defect\", default=\"\"";
    job.replace(job.find(none), none.size(), "\"--defect\", default=\"" + defect + "\"");
    write(at("job/train.py"), job);
    const std::string wheel = "'" + at(wheel_).string() + "'";
    const std::string variables = "PATH='" + at("env/bin").string() +
                                  "':\"$PATH\" PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 "
                                  "REPRISE_PACKAGE=" +
                                  wheel + " PACKAGE=" + wheel +
                                  " COMMAND='python train.py --steps \"12\"' "
                                  "OPTIONS=--resume-args=--resume GATE='" +
                                  gate + "'";
    std::vector<Line> lines;
    add_lines(YAML::LoadFile((kTree / "ci" / GetParam()).string()), lines);
    Said all{.exit_code = 0, .text = ""};
    for (const auto& line : lines) {
      if (all.exit_code != 0 && !line.always) continue;
      const Said said = shell_in(at("job"), line.text, variables);
      all.text += said.text;
      if (all.exit_code == 0) all.exit_code = said.exit_code;
    }
    return all;
  }
  static bool has_summary() { return GetParam() != std::string("gitlab.yml"); }

  static fs::path at(const std::string& path) { return fs::path(tree_->path()) / path; }

  static contracts::TemporaryDirectory* tree_;
  static std::string wheel_;
};
contracts::TemporaryDirectory* Recipes::tree_ = nullptr;
std::string Recipes::wheel_;

TEST_P(Recipes, accepts_a_command_that_resumes) {
  const Said said = run("");
  if (said.text.find("is not a commit") != std::string::npos) {
    GTEST_SKIP() << "built outside a git clone";
  }
  EXPECT_EQ(said.exit_code, 0) << said.text;
  EXPECT_NE(said.text.find("resume: pass"), std::string::npos) << said.text;
  EXPECT_NE(said.text.find("\naccepted\n"), std::string::npos) << said.text;
  const auto report = nlohmann::json::parse(text_of(at("job/build/report/report.json")));
  EXPECT_EQ(report["lane"], "watch");
  EXPECT_EQ(report["verdict"], "pass");
  for (const char* page : {"report.html", "junit.xml", "baseline.json"}) {  // artifacts
    EXPECT_TRUE(fs::exists(at("job/build/report") / page)) << page;
  }
  EXPECT_EQ(text_of(at("job/page.md")),
            has_summary() ? text_of(at("job/build/report/summary.md")) : "");
  if (GetParam() != std::string("action.yml")) return;
  fs::rename(at("job/build/report/baseline.json"), at("baseline.json"));
  const Said again = run("", "--baseline \"../baseline.json\"");
  EXPECT_EQ(again.exit_code, 0) << again.text;
  EXPECT_NE(again.text.find("1 scenario (baseline 1)"), std::string::npos) << again.text;
}

TEST_P(Recipes, is_red_where_nothing_can_be_said) {
  const Said said = run("unseeded weights");
  EXPECT_EQ(said.exit_code, 3) << said.text;
  EXPECT_NE(said.text.find("resume: inconclusive"), std::string::npos) << said.text;
}

TEST_P(Recipes, is_red_where_the_average_is_lost_and_shows_it) {
  const Said said = run("the average is lost");
  EXPECT_EQ(said.exit_code, 1) << said.text;
  EXPECT_NE(said.text.find("ema.shadow"), std::string::npos) << said.text;
  EXPECT_NE(text_of(at("job/build/report/junit.xml")).find("LOST_OBJECT"), std::string::npos);
  EXPECT_EQ(said.text.find("::error title=watch%3A fail") != std::string::npos, has_summary())
      << said.text;
  EXPECT_EQ(text_of(at("job/page.md")).find("ema.shadow") != std::string::npos, has_summary());
}

INSTANTIATE_TEST_SUITE_P(Copied, Recipes, testing::Values("github.yml", "gitlab.yml", "action.yml"),
                         [](const testing::TestParamInfo<const char*>& row) {
                           const std::string name = row.param;
                           return name.substr(0, name.find('.'));
                         });

/// A tree as ci/gate.sh finds it: its folder, a catalogue of two files, and a ./dev that puts the
/// program of this build where the real one builds it. The program tries two properties in one
/// random case each.
class GateScript : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    tree_ = new contracts::TemporaryDirectory;  // NOLINT: removed in TearDownTestSuite
    const fs::path tree = tree_->path();
    fs::copy(kTree / "ci", tree / "ci", fs::copy_options::recursive);
    for (const char* name : {"ep2.yaml", "tp2dp2-to-tp4.yaml"}) {
      fs::create_directories(tree / "scenarios/placements");
      fs::copy(kTree / "scenarios/placements" / name, tree / "scenarios/placements" / name);
    }
    fs::create_directories(tree / "reports");
    const std::string program = "'" REPRISE_EXE "'";
    write(tree / "program",
          "#!/bin/sh\n"
          "case \"$1 $2\" in\n"
          "  'search properties') shift 2; exec " +
              program +
              " search properties continuity layout-free --cases 1 \"$@\" ;;\n"
              "  'mutants '*) shift; exec " +
              program +
              " mutants --property-cases 0 \"$@\" ;;\n"
              "  *) exec " +
              program +
              " \"$@\" ;;\n"
              "esac\n");
    write(tree / "dev",
          "#!/bin/sh\n"
          "[ \"$*\" = 'build release reprise' ] || exit 64\n"
          "cd \"$(dirname \"$0\")\" && mkdir -p build/release && ln -sf ../../program "
          "build/release/reprise\n");
    for (const char* name : {"program", "dev"}) {
      fs::permissions(tree / name, fs::perms::owner_all);
    }
    accepted_ = shell("ci/gate.sh -- --write-baseline reports/baseline.json");
  }
  static void TearDownTestSuite() {
    delete tree_;  // NOLINT
    tree_ = nullptr;
  }
  void SetUp() override {
    if (accepted_.text.find("is not a commit") != std::string::npos) {
      GTEST_SKIP() << "built outside a git clone";
    }
    ASSERT_EQ(accepted_.exit_code, 0) << accepted_.text;
  }

  static Said shell(const std::string& line) { return shell_in(tree_->path(), line, ""); }

  /// Makes a tarball with the layout of './dev package'; returns its path.
  static std::string tarball() {
    const Said made = shell(
        "mkdir -p reprise-0/bin && cp program reprise-0/bin/reprise && tar -czf reprise-0.tar.gz "
        "reprise-0");
    EXPECT_EQ(made.exit_code, 0) << made.text;
    return tree_->path() + "/reprise-0.tar.gz";
  }

  static fs::path at(const std::string& path) { return fs::path(tree_->path()) / path; }

  static contracts::TemporaryDirectory* tree_;
  static Said accepted_;
};
contracts::TemporaryDirectory* GateScript::tree_ = nullptr;
Said GateScript::accepted_;

/// Tries a package whose program ends `diff` in the given way.
int package_trial(const std::string& end_of_diff) {
  const contracts::TemporaryDirectory directory;
  const fs::path program = fs::path(directory.path()) / "program";
  write(program, "#!/bin/sh\n[ \"$1\" != diff ] || " + end_of_diff + "\n");
  fs::permissions(program, fs::perms::owner_all);
  const std::string command =
      "cd '" REPRISE_SOURCE_DIR
      "' && bash -uo pipefail -c '. tools/package.sh && package_works \"$1\"' "
      "bash '" +
      program.string() + "' 2>&1";
  const int status = std::system(command.c_str());  // NOLINT: the words are this test's own
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

TEST(Package, works_only_if_its_program_says_that_two_checkpoints_differ) {
  EXPECT_EQ(package_trial("exit 1"), 0);
  for (const char* other : {"exit 0", "exit 2", "exit 5", "kill -SEGV $$"}) {
    EXPECT_NE(package_trial(other), 0) << other;
  }
}

TEST(Package, its_readme_names_only_what_is_in_it) {
  const std::string text = text_of(kTree / "tools/package-readme.md");
  EXPECT_NE(text_of(kTree / "tools/package.sh").find("cp tools/package-readme.md"),
            std::string::npos);
  for (const char* absent : {"build/release", "./dev", "tests/data", "](", "ci/"}) {
    EXPECT_EQ(text.find(absent), std::string::npos) << absent;
  }
  static const std::regex kCommand("\n    reprise ([a-z]+)([^\n#]*)");
  std::size_t commands = 0;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), kCommand);
       at != std::sregex_iterator(); ++at, ++commands) {
    EXPECT_EQ(run_program({at->str(1), "--help"}).exit_code, 0) << at->str();
    std::istringstream words(at->str(2));
    for (std::string word; words >> word;) {
      EXPECT_TRUE(!word.starts_with("scenarios") || fs::exists(kTree / word)) << word;
    }
  }
  EXPECT_GT(commands, 6U);
}

/// A line of README.md that a reader may type, and the lines that stand below it as its output.
struct TypedLine {
  std::string command;
  std::string output;
};

/// Returns the lines that begin with `$`, with what they print, and those that begin with the
/// program or with ./dev, without their remarks.
std::vector<TypedLine> typed_lines(const std::string& page) {
  std::vector<TypedLine> lines;
  bool prints = false;
  std::istringstream in(page);
  for (std::string line; std::getline(in, line);) {
    const bool indented = line.starts_with("    ");
    const std::string text = indented ? line.substr(4) : "";
    if (text.starts_with("$ ")) {
      lines.push_back({.command = text.substr(2), .output = ""});
      prints = true;
    } else if (indented && prints) {
      lines.back().output += text + "\n";
    } else if (text.starts_with("build/release/reprise ") || text.starts_with("./dev")) {
      lines.push_back({.command = text.substr(0, text.find(" #")), .output = ""});
    }
    prints = prints && indented;
  }
  return lines;
}

/// A directory in which the program and the folders that README.md names are where they are in the
/// tree after a build, and in whose `bin` the program is as the wheel installs it.
std::string tree_of_links(const std::string& root) {
  for (const char* folder : {"build/release", "bin"}) {
    fs::create_directories(fs::path(root) / folder);
    fs::create_symlink(REPRISE_EXE, fs::path(root) / folder / "reprise");
  }
  for (const char* folder : {"tests", "scenarios", "trainers"}) {
    fs::create_symlink(kTree / folder, fs::path(root) / folder);
  }
  return root;
}

TEST(Readme, each_line_of_the_program_prints_what_stands_below_it) {
  const contracts::TemporaryDirectory directory;
  const std::string root = tree_of_links(directory.path());
  std::size_t ran = 0;
  for (const auto& typed : typed_lines(text_of(kTree / "README.md"))) {
    if (typed.command.starts_with("./dev")) continue;
    const std::string command =
        "cd '" + root + "' && PATH=\"$PWD/bin:$PATH\" && " + typed.command + " >said 2>&1";
    const int status = std::system(command.c_str());  // NOLINT: the words are README.md's
    const std::string said = text_of(root + "/said");
    const bool fails = typed.command.find("--mutant") != std::string::npos;
    EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : 128, fails ? 1 : 0) << command << '\n'
                                                                            << said;
    EXPECT_TRUE(typed.output.empty() || said == typed.output) << typed.command << "\n" << said;
    ++ran;
  }
  EXPECT_GE(ran, 4U);
}

TEST(Readme, names_only_verbs_that_dev_lists) {
  const contracts::TemporaryDirectory directory;
  const std::string file = directory.path() + "/said";
  const std::string command = "cd '" + kTree.string() + "' && ./dev >'" + file + "' 2>&1";
  ASSERT_NE(std::system(command.c_str()), -1);  // NOLINT: lists the verbs
  const std::string listed = text_of(file);
  static const std::regex kVerb(R"(\./dev ([a-z]+))");
  const std::string text = text_of(kTree / "README.md");
  std::size_t verbs = 0;
  for (std::sregex_iterator verb(text.begin(), text.end(), kVerb); verb != std::sregex_iterator();
       ++verb, ++verbs) {
    EXPECT_NE(listed.find("\n  " + (*verb)[1].str() + " "), std::string::npos) << verb->str();
  }
  EXPECT_GE(verbs, 4U);
}

TEST(Readme, has_at_most_90_lines) {
  const std::string text = text_of(kTree / "README.md");
  EXPECT_GT(text.size(), 0U);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 90);
}

TEST_F(GateScript, gathers_the_evidence_that_the_gate_accepts) {
  fs::remove_all(at("build"));
  fs::remove(at("page.md"));
  const Said said = shell("ci/gate.sh --package ''");
  EXPECT_EQ(said.exit_code, 0) << said.text;
  EXPECT_NE(said.text.find("\naccepted\n"), std::string::npos) << said.text;
  EXPECT_EQ(said.text.find("--quiet"), std::string::npos) << "a log shows how far it is";
  EXPECT_EQ(text_of(at("page.md")), text_of(at("build/report/summary.md")));
  EXPECT_NE(text_of(at("page.md")), "");
  const auto report = nlohmann::json::parse(text_of(at("build/report/report.json")));
  EXPECT_EQ(report["determinism"]["runs_doubled"], 2);
  EXPECT_EQ(report["mutants"].size(), 5U);
  EXPECT_EQ(report["properties"].size(), 2U) << "those of the program above, not all";
}

TEST_F(GateScript, installs_a_package_and_tries_only_the_scenarios_with_it) {
  const std::string package = tarball();
  for (const char* address : {"", "file://"}) {
    fs::remove_all(at("build"));
    const Said said = shell("ci/gate.sh --jobs 1 --package '" + (address + package) +
                            "' -- --write-baseline build/baseline.json");
    EXPECT_EQ(said.exit_code, 0) << address << said.text;
    EXPECT_NE(said.text.find("\naccepted\n"), std::string::npos) << said.text;
    EXPECT_TRUE(fs::exists(at("build/installed/bin/reprise"))) << said.text;
    EXPECT_FALSE(fs::exists(at("build/release"))) << "nothing is built";
    const auto report = nlohmann::json::parse(text_of(at("build/report/report.json")));
    EXPECT_EQ(report["scenarios"].size(), 2U);
    EXPECT_TRUE(report["mutants"].empty());
    EXPECT_TRUE(report["properties"].empty());
  }
}

TEST_F(GateScript, runs_the_lane_that_is_named) {
  write(at("mine/trainers/small/trainer.yaml"),
        "name: small\nabout: for a test\ncommand: [sh, -c, exit 3]\naxes: [dp]\nranks: 1\n"
        "actions: [train, save]\n");
  write(at("mine/scenarios/t.yaml"),
        "proves: x\ntrainer: {name: small, layout: {dp: 1}}\nsteps:\n  - train: 2\n  - save\n"
        "expect: {max_delta: 0}\n");
  const Said said =
      shell("ci/gate.sh --program ./program --lane program --scenarios mine/scenarios --jobs 1");
  EXPECT_EQ(said.exit_code, 1) << said.text;
  EXPECT_NE(said.text.find("==> ./program run mine/scenarios --lane program --jobs 1 --report"),
            std::string::npos)
      << said.text;
  EXPECT_NE(said.text.find("ended with 3 before its witness began"), std::string::npos);
  EXPECT_NE(said.text.find("gate build/report --lane program --baseline"), std::string::npos)
      << said.text;
  EXPECT_EQ(said.text.find("again with --double"), std::string::npos)
      << "the lane has no such runs";
}

TEST_F(GateScript, installs_a_wheel) {
  const std::string wheel = wheel_in(tree_->path());
  if (wheel.empty()) GTEST_SKIP() << "no python3 with venv";
  const Said said = shell("ci/gate.sh --package " + wheel + " --scenarios nowhere");
  EXPECT_EQ(said.exit_code, 2) << "there is no such catalogue";
  EXPECT_NE(said.text.find("\nreprise "), std::string::npos) << "the version: " << said.text;
  EXPECT_NE(said.text.find("build/installed/bin/reprise run nowhere"), std::string::npos)
      << said.text;
}

TEST_F(GateScript, a_package_that_cannot_be_installed_ends_it) {
  write(at("broken.tar.gz"), "no archive");
  for (const char* package : {"broken.tar.gz", "absent.tar.gz", "program", "file:///absent.whl"}) {
    const Said said = shell("ci/gate.sh --package " + std::string(package));
    EXPECT_EQ(said.exit_code, 1) << package << said.text;
    EXPECT_EQ(said.text.find("==> "), said.text.rfind("==> ")) << "nothing runs: " << said.text;
  }
}

TEST_F(GateScript, with_a_history_the_page_shows_it_and_ten_reports_are_kept) {
  fs::remove_all(at("build"));
  const std::string line = "ci/gate.sh --history build/history";
  const std::string earlier = "\"history\":{";  // from which the page draws its section
  EXPECT_EQ(shell(line).exit_code, 0);
  EXPECT_EQ(text_of(at("build/report/report.html")).find(earlier), std::string::npos);
  EXPECT_EQ(shell("sleep 1; for i in 1 2 3 4 5 6 7 8 9 10; do cp -r build/history/reprise-2* "
                  "build/history/reprise-1000010$i; done; mkdir build/history/other")
                .exit_code,
            0);
  const Said said = shell(line);
  EXPECT_EQ(said.exit_code, 0) << said.text;
  EXPECT_NE(text_of(at("build/report/report.html")).find(earlier), std::string::npos) << said.text;
  const auto kept = std::distance(fs::directory_iterator(at("build/history")), {});
  EXPECT_EQ(kept, 11) << "ten reports, and what the script did not make";
}

TEST_F(GateScript, what_is_refused_is_red_and_has_its_summary) {
  const fs::path file = at("scenarios/placements/ep2.yaml");
  fs::rename(file, at("ep2.yaml"));
  fs::remove(at("page.md"));
  const Said said = shell("ci/gate.sh");
  fs::rename(at("ep2.yaml"), file);
  EXPECT_EQ(said.exit_code, 1) << said.text;
  EXPECT_NE(said.text.find("placements/ep2: it is in the baseline but not in the report"),
            std::string::npos)
      << said.text;
  EXPECT_NE(text_of(at("page.md")), "") << "the summary matters most where something failed";
}

TEST_F(GateScript, stops_at_wrong_usage_without_judging_an_earlier_run) {
  for (const char* words : {"--scenarios nowhere", "--lane nowhere"}) {
    const Said said = shell(std::string("ci/gate.sh ") + words);
    EXPECT_EQ(said.exit_code, 2) << said.text;
    EXPECT_EQ(said.text.find("==> "), said.text.rfind("==> ")) << "no further step: " << said.text;
    EXPECT_FALSE(fs::exists(at("build/report/report.json")));
  }
}

TEST_F(GateScript, wrong_words_run_nothing) {
  for (const char* line : {"ci/gate.sh --colour", "ci/gate.sh --report", "ci/gate.sh scenarios",
                           "ci/gate.sh --package a.whl --program reprise"}) {
    const Said said = shell(line);
    EXPECT_EQ(said.exit_code, 2) << line;
    EXPECT_EQ(said.text.find("usage: ci/gate.sh"), 0U) << said.text;
  }
  const Said said = shell("ci/gate.sh --program nowhere/reprise");
  EXPECT_EQ(said.exit_code, 2);
  EXPECT_EQ(said.text, "ci/gate.sh: there is no program nowhere/reprise\n");
}

TEST_F(GateScript, the_command_that_gate_prints_completes_a_plain_run) {
  const std::string gate = "'" REPRISE_EXE
                           "' gate out --lane sim --baseline reports/baseline.json "
                           "--allow-dirty";
  ASSERT_EQ(shell("'" REPRISE_EXE "' run scenarios/placements/ep2.yaml --report out").exit_code, 0);
  const Said refused = shell(gate);
  EXPECT_EQ(refused.exit_code, 1) << refused.text;
  EXPECT_NE(refused.text.find("1 scenario is missing (the baseline has 2), nothing was run "
                              "twice"),
            std::string::npos)
      << refused.text;
  EXPECT_NE(refused.text.find("refused: 1 reason\n"), std::string::npos) << refused.text;
  const std::string before = "fix: complete it: ";
  const auto begin = refused.text.find(before);
  ASSERT_NE(begin, std::string::npos) << refused.text;
  const auto end = refused.text.find('\n', begin);
  std::string command = refused.text.substr(begin + before.size(), end - begin - before.size());
  // The same words, for the program that tries few random cases.
  for (auto at = command.find(REPRISE_EXE); at != std::string::npos;
       at = command.find(REPRISE_EXE)) {
    command.replace(at, std::string(REPRISE_EXE).size(), "./program");
  }
  const Said made = shell(command);
  EXPECT_EQ(made.exit_code, 0) << command << '\n' << made.text;
  const Said accepted = shell(gate);
  EXPECT_EQ(accepted.exit_code, 0) << command << '\n' << accepted.text;
}

TEST(RecipeTexts, name_no_host_to_download_from) {
  for (const auto& entry : fs::directory_iterator(kTree / "ci")) {
    static const std::regex kAddress("://[a-z]");
    EXPECT_FALSE(std::regex_search(text_of(entry.path()), kAddress)) << entry.path();
  }
}

}  // namespace
}  // namespace reprise::test::recipes_test
