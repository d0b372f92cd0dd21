// Tests that a shell reads each word back as it was.

#include "core/base/shell_word.hpp"

#include <gtest/gtest.h>

#include <cstdio>

namespace reprise {
namespace {

TEST(ShellWord, plain_words_stay_as_they_are) {
  EXPECT_EQ(shell_word("build/report-1.json"), "build/report-1.json");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
}

TEST(ShellWord, a_shell_reads_every_word_as_it_was) {
  std::string all;
  for (int c = 1; c < 127; ++c) all += static_cast<char>(c);
  for (const std::string& word : {all, std::string("~"), std::string("#x"), std::string("$HOME")}) {
    FILE* const pipe = ::popen(("printf %s " + shell_word(word)).c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::string read;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) read += static_cast<char>(c);
    ::pclose(pipe);
    EXPECT_EQ(read, word);
  }
}

}  // namespace
}  // namespace reprise
