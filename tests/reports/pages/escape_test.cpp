#include "reports/pages/escape.hpp"

#include <gtest/gtest.h>

#include <ostream>

namespace reprise::reports {
namespace {

struct Row {
  const char* name;
  std::string (*escape)(std::string_view text);
  std::string text;
  std::string escaped;
};
std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

class Escape : public testing::TestWithParam<Row> {};

TEST_P(Escape, row) { EXPECT_EQ(GetParam().escape(GetParam().text), GetParam().escaped); }

INSTANTIATE_TEST_SUITE_P(
    Media, Escape,
    testing::Values(
        Row{"html", in_html, "<a b=\"c\">'&amp;\n|", "&#60;a b=&#34;c&#34;&#62;&#39;&#38;amp;\n|"},
        Row{"html_control", in_html, "a\x1b[2K\xff\r", "a\\x1b[2K\\xff\\x0d"},
        Row{"html_keeps_other_letters", in_html, "\xc3\xa9", "\xc3\xa9"},
        Row{"message", in_annotation, "50%: a,b\r\nc", "50%25: a,b%0D%0Ac"},
        Row{"message_control", in_annotation, "a\x1b", "a\\x1b"},
        Row{"property", in_annotation_property, "50%: a,b\r\nc", "50%25%3A a%2Cb%0D%0Ac"},
        Row{"nothing", in_html, "", ""}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(Escape, a_long_text_is_cut_between_characters) {
  EXPECT_EQ(clipped("abc", 3), "abc");
  EXPECT_EQ(clipped("abcd", 3), "abc\xe2\x80\xa6");
  EXPECT_EQ(clipped("a\xc3\xa9z", 2), "a\xe2\x80\xa6");
  EXPECT_EQ(clipped("\xe2\x80\xa6z", 2), "\xe2\x80\xa6");
  EXPECT_EQ(clipped("\x80\x80", 1), "\xe2\x80\xa6") << "no character begins here";
}

}  // namespace
}  // namespace reprise::reports
