// Tests that text from files is made safe for a terminal.
#include "core/base/printable.hpp"

#include <gtest/gtest.h>
#include <stdexcept>

#include <new>
#include <string>
#include <vector>

#include "core/base/caught.hpp"

namespace reprise {
namespace {

TEST(Printable, writes_out_what_a_terminal_obeys_and_nothing_else) {
  struct Row {
    std::string text;
    std::string shown;
  };
  const std::vector<Row> rows = {
      {"layers.0.weight [rank 3]~", "layers.0.weight [rank 3]~"},
      {"", ""},
      {"a\x1b[2Kb\r\n\tc", "a\\x1b[2Kb\\x0d\\n\\x09c"},
      {std::string("a\0b", 3), "a\\x00b"},
      {"\x7f", "\\x7f"},
      {"\xc2\x9b"
       "2K",
       "\\x9b2K"},  // a C1 code as UTF-8
      {"\x9b"
       "2K",
       "\\x9b2K"},                            // the same C1 code as a single byte
      {"\xc2\x9f\xc2\xa0", "\\x9f\xc2\xa0"},  // the last C1 code, and the character behind it
      {"\xe2\x80\xae\xe2\x81\xa6", "\\u202e\\u2066"},  // marks for text from right to left
      {"\xe2\x80\xa8", "\\u2028"},                     // a line separator
      {"\xed\xb2\x80", "\\udc80"},                     // half a character
      {"sch\xc3\xb6n \xe6\xa8\xa1 \xf0\x9f\x8c\x8d", "sch\xc3\xb6n \xe6\xa8\xa1 \xf0\x9f\x8c\x8d"},
      {"\xc3", "\\xc3"},                             // a character that is cut off
      {"\xc0\x9b", "\\xc0\\x9b"},                    // a longer encoding than necessary
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},  // beyond the last code point
      {"\xff\xfe", "\\xff\\xfe"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(printable(row.text), row.shown);
    EXPECT_EQ(printable(row.shown), row.shown);
  }
  EXPECT_EQ(printable("a\nb\r\n", LineBreaks::kKept), "a\nb\\x0d\n");
}

TEST(Printable, holds_for_errors_so_that_what_they_say_is_one_line) {
  const Error error(Code::kTornFile, "cut\n", {.key = "k\x1b[1A", .file = "f\r"});
  EXPECT_EQ(std::string(error.what()), "TORN_FILE: cut\\n [key k\\x1b[1A, file f\\x0d]");
  EXPECT_EQ(error.place().key, "k\x1b[1A") << "the key itself must stay unescaped";
}

TEST(Caught, is_an_error_whatever_it_was) {
  EXPECT_EQ(error_from(Error(Code::kIo, "gone")).code(), Code::kIo);
  EXPECT_EQ(std::string(error_from(std::bad_alloc()).what()), "INTERNAL: out of memory");
  EXPECT_EQ(std::string(error_from(std::runtime_error("why")).what()), "INTERNAL: why");
}

}  // namespace
}  // namespace reprise
