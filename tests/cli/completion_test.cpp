// Tests the completion scripts. The one for bash runs in bash.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "cli/output/completion_script.hpp"
#include "cli/program.hpp"
#include "tests/cli/run_program.hpp"
#include "tests/contracts/temporary_directory.hpp"

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

/// bash, with the script loaded, in a directory with a file "a b.yaml" and a directory "runs".
class Bash {
 public:
  Bash() {
    const auto script = run_program({"completion", "bash"});
    EXPECT_EQ(script.exit_code, 0) << script.err;
    std::ofstream(path("completion")) << script.out;
    fs::create_directories(path("here/runs"));
    std::ofstream(path("here/a b.yaml")) << "x";
  }

  /// Returns what bash offers for the last of the words, which may be empty.
  Words offers(const std::vector<std::string>& words) const {
    std::string command = "cd " + path("here") + " && . " + path("completion") + " && COMP_WORDS=(";
    for (const auto& word : words) command += "'" + word + "' ";
    command += ") && COMP_CWORD=" + std::to_string(words.size() - 1) +
               " && _reprise && printf '%s\\n' \"${COMPREPLY[@]}\"";
    std::ofstream(path("command")) << command;
    FILE* pipe = ::popen(("bash --norc --noprofile " + path("command") + " 2>&1").c_str(), "r");
    std::string text;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
    ::pclose(pipe);
    Words offered;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = text.find('\n', begin);
      if (end != begin) offered.insert(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return offered;
  }

 private:
  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }

  contracts::TemporaryDirectory directory_;
};

TEST(Completion, bash_offers_each_verb_and_each_option_that_the_program_declares) {
  const Bash bash;
  const auto verbs = cli::all_verbs();
  const auto program = cli::parser_of(verbs);
  Words names = {"-h", "--help", "--version"};
  for (const CLI::App* verb : program->get_subcommands([](CLI::App*) { return true; })) {
    if (verb->get_group().empty()) continue;
    names.insert(verb->get_name());
    Words options;
    for (const CLI::Option* option : verb->get_options()) {
      for (const auto& name : option->get_lnames()) options.insert("--" + name);
    }
    EXPECT_EQ(bash.offers({"reprise", verb->get_name(), "--"}), options) << verb->get_name();
  }
  EXPECT_EQ(bash.offers({"reprise", ""}), names);
  EXPECT_THAT(names, AllOf(Contains("diff"), Contains("completion"), Not(Contains("rank"))));
}

TEST(Completion, bash_completes_parts_of_words_values_and_paths) {
  const Bash bash;
  EXPECT_THAT(bash.offers({"reprise", "di"}), ElementsAre("diff"));
  EXPECT_THAT(bash.offers({"reprise", "diff", "--ig"}), ElementsAre("--ignore"));
  EXPECT_THAT(bash.offers({"reprise", "diff", "A", "--no-"}), ElementsAre("--no-checksums"));
  EXPECT_THAT(bash.offers({"reprise", "diff", ""}), UnorderedElementsAre("runs", "a b.yaml"));
  EXPECT_THAT(bash.offers({"reprise", "diff", "--report", ""}), ElementsAre("runs"));
  EXPECT_THAT(bash.offers({"reprise", "diff", "--report", "=", "r"}), ElementsAre("runs"));
  EXPECT_THAT(bash.offers({"reprise", "diff", "--keys", ""}), IsEmpty());
  EXPECT_THAT(bash.offers({"reprise", "reshard", "--per-rank", ""}),
              UnorderedElementsAre("first", "drop"));
  EXPECT_THAT(bash.offers({"reprise", "completion", "b"}), ElementsAre("bash"));
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
