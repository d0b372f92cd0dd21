// Tests the completion scripts, each in its shell.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cli/output/completion_script.hpp"
#include "cli/program.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test::completion_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;
using Words = std::set<std::string>;

/// A directory with a file "a b.yaml" and a directory "runs", and the script for a shell.
class Place {
 public:
  explicit Place(const std::string& shell) {
    const auto script = run_program({"completion", shell});
    EXPECT_EQ(script.exit_code, 0) << script.err;
    write("completion", script.out);
    fs::create_directories(path("here/runs"));
    write("here/a b.yaml", "x");
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }
  /// Runs a command of sh in the directory; returns the lines that are not empty.
  Words lines_of(const std::string& command) const {
    FILE* pipe = ::popen(("cd " + path("here") + " && " + command + " 2>&1").c_str(), "r");
    std::string text;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
    ::pclose(pipe);
    Words lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      if (!line.empty()) lines.insert(line);
    }
    return lines;
  }

 private:
  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }

  contracts::TemporaryDirectory directory_;
};

bool is_installed(const std::string& shell) {
  return std::system(("command -v " + shell + " >/dev/null").c_str()) == 0;  // NOLINT: fixed words
}

/// bash, with the script loaded.
class Bash {
 public:
  /// Returns what bash offers for the last of the words, which may be empty.
  Words offers(const std::vector<std::string>& words) const {
    std::string command = ". ../completion && COMP_WORDS=(";
    for (const auto& word : words) command += "'" + word + "' ";
    command += ") && COMP_CWORD=" + std::to_string(words.size() - 1) +
               " && _reprise && printf '%s\\n' \"${COMPREPLY[@]}\"";
    place_.write("command", command);
    return place_.lines_of("bash --norc --noprofile ../command");
  }

 private:
  Place place_{"bash"};
};

/// fish, with the script loaded.
class Fish {
 public:
  /// Returns what fish offers at the end of the line, without explanations.
  Words offers(const std::string& line) const {
    place_.write("command", "source ../completion\ncomplete -C '" + line + "'\n");
    return place_.lines_of("HOME=$PWD/.. fish --no-config ../command | cut -f 1");
  }

 private:
  Place place_{"fish"};
};

/// zsh at a terminal of its own, with the script loaded.
class Zsh {
 public:
  Zsh() {
    place_.write("command",
                 "zmodload zsh/zpty\n"
                 "zpty pty zsh -f -i\n"
                 "zpty -w pty 'PS1=; autoload -Uz compinit; compinit -u -D; . ../completion; "
                 "bindkey \"^I\" list-choices; echo REA''DY'\n"
                 "zpty -r pty text '*READY*'\n"
                 "zpty -w -n pty \"$1\"$'\\t'\n"
                 "zpty -r pty text \"*$2*\" && print shown\n"
                 "zpty -d pty\n");
  }
  /// True if zsh lists `wanted`, which is a pattern, at the end of the line within 20 seconds.
  bool lists(const std::string& line, const std::string& wanted) const {
    const Words said =
        place_.lines_of("TERM=dumb timeout 20 zsh -f ../command '" + line + "' '" + wanted + "'");
    return said.contains("shown");
  }

 private:
  Place place_{"zsh"};
};

TEST(Completion, bash_offers_every_declared_verb_and_option) {
  const Bash bash;
  const auto verbs = cli::all_verbs();
  const auto program = cli::parser_of(verbs);
  Words names = {"-h", "--help", "--version"};
  for (const CLI::App* verb : program->get_subcommands([](CLI::App*) { return true; })) {
    if (verb->get_group().empty()) continue;
    names.insert(verb->get_name());
    Words options;
    auto parsers = verb->get_subcommands([](const CLI::App*) { return true; });
    parsers.push_back(verb);
    for (const CLI::App* parser : parsers) {
      for (const CLI::Option* option : parser->get_options()) {
        for (const auto& name : option->get_lnames()) options.insert("--" + name);
      }
    }
    EXPECT_EQ(bash.offers({"reprise", verb->get_name(), "--"}), options) << verb->get_name();
  }
  EXPECT_EQ(bash.offers({"reprise", ""}), names);
  EXPECT_THAT(names, AllOf(Contains("diff"), Contains("completion"), Not(Contains("rank"))));
}

TEST(Completion, bash_completes_parts_of_words_values_and_paths) {
  const Bash bash;
  EXPECT_THAT(bash.offers({"reprise", "dif"}), ElementsAre("diff"));
  EXPECT_THAT(bash.offers({"reprise", "diff", "--ig"}), ElementsAre("--ignore"));
  EXPECT_THAT(bash.offers({"reprise", "diff", "A", "--no-c"}), ElementsAre("--no-checksums"));
  EXPECT_THAT(bash.offers({"reprise", "diff", ""}), UnorderedElementsAre("runs", "a b.yaml"));
  EXPECT_THAT(bash.offers({"reprise", "diff", "--report", ""}), ElementsAre("runs"));
  EXPECT_THAT(bash.offers({"reprise", "diff", "--report", "=", "r"}), ElementsAre("runs"));
  EXPECT_THAT(bash.offers({"reprise", "diff", "--keys", ""}), IsEmpty());
  EXPECT_THAT(bash.offers({"reprise", "reshard", "--per-rank", ""}),
              UnorderedElementsAre("first", "drop"));
  EXPECT_THAT(bash.offers({"reprise", "completion", "b"}), ElementsAre("bash"));
  EXPECT_THAT(bash.offers({"reprise", "search", "ex"}), UnorderedElementsAre("exhaust", "explore"));
  EXPECT_THAT(bash.offers({"reprise", "search", "exhaust", "--hs"}), ElementsAre("--hsdp"));
}

TEST(Completion, fish_completes_verbs_options_values_and_paths) {
  if (!is_installed("fish")) GTEST_SKIP() << "no fish";
  const Fish fish;
  EXPECT_THAT(fish.offers("reprise dif"), ElementsAre("diff"));
  EXPECT_THAT(fish.offers("reprise diff --ig"), ElementsAre("--ignore"));
  EXPECT_THAT(fish.offers("reprise diff run --no-c"), ElementsAre("--no-checksums"))
      << "not the options of run";
  EXPECT_THAT(fish.offers("reprise diff "), UnorderedElementsAre("runs/", "a b.yaml"));
  EXPECT_THAT(fish.offers("reprise diff --report "), ElementsAre("runs/"));
  EXPECT_THAT(fish.offers("reprise diff --keys "), IsEmpty());
  EXPECT_THAT(fish.offers("reprise reshard --per-rank "), UnorderedElementsAre("first", "drop"));
  EXPECT_THAT(fish.offers("reprise completion b"), ElementsAre("bash"));
}

TEST(Completion, zsh_completes_verbs_options_values_and_paths) {
  if (!is_installed("zsh")) GTEST_SKIP() << "no zsh";
  const Zsh zsh;
  EXPECT_TRUE(zsh.lists("reprise dif", "diff  -- Compare"));
  EXPECT_TRUE(zsh.lists("reprise diff --ig", "--ignore  -- skip"));
  EXPECT_TRUE(zsh.lists("reprise diff ", "a\\\\ b.yaml*runs"));
  EXPECT_TRUE(zsh.lists("reprise run --lane=", "gpu *mpi *program *sim"));
  EXPECT_TRUE(zsh.lists("reprise reshard --per-rank ", "drop *first"));
}

TEST(Completion, zsh_and_fish_name_the_same_verbs_and_options) {
  for (const char* shell : {"zsh", "fish"}) {
    const auto script = run_program({"completion", shell});
    EXPECT_EQ(script.exit_code, 0) << script.err;
    EXPECT_THAT(script.out, AllOf(HasSubstr("reshard"), HasSubstr("rename"), HasSubstr("per-rank"),
                                  HasSubstr("first drop"), Not(HasSubstr("records"))))
        << shell;
  }
  EXPECT_EQ(run_program({"completion", "tcsh"}).exit_code, 2);
}

}  // namespace
}  // namespace reprise::test::completion_test
