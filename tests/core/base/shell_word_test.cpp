// Tests that a shell reads each word back as it was.

#include "core/base/shell_word.hpp"

#include <gtest/gtest.h>

#include <cstdio>

#include "core/base/printable.hpp"

namespace reprise {
namespace {

TEST(ShellWord, plain_words_stay_as_they_are) {
  EXPECT_EQ(shell_word("build/report-1.json"), "build/report-1.json");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
}

TEST(ShellWord, what_cannot_be_printed_is_escaped) {
  EXPECT_EQ(shell_word("a\x1b"
                       "b\n'\\\xff"),
            "$'a\\x1bb\\x0a\\'\\\\\\xff'");
  EXPECT_EQ(shell_word("\xc3\xa9"), "'\xc3\xa9'") << "letters are no such characters";
}

TEST(ShellWord, bash_reads_every_word_as_it_was_and_a_person_sees_it) {
  std::string all;
  for (int c = 1; c < 256; ++c) all += static_cast<char>(c);
  for (const std::string& word : {all, all.substr(0, 126), std::string("~"), std::string("#x"),
                                  std::string("$HOME"), std::string("a\nb"), std::string("\x1b[0m"),
                                  std::string("\xc3\xa9"), std::string("\xe2\x80\xae")}) {
    EXPECT_EQ(printable(shell_word(word)), shell_word(word));
    const std::string command = "bash <<'END'\nprintf %s " + shell_word(word) + "\nEND\n";
    FILE* const pipe = ::popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::string read;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) read += static_cast<char>(c);
    ::pclose(pipe);
    EXPECT_EQ(read, word);
  }
}

}  // namespace
}  // namespace reprise
