// Tests which bytes are text.
#include "core/base/utf8.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace reprise {
namespace {

TEST(Utf8, is_text_and_may_have_surrogates) {
  using namespace std::string_view_literals;
  const std::string_view good[] = {""sv,
                                   "\0a\x7f"sv,
                                   "\xc2\x80"sv,
                                   "\xdf\xbf"sv,
                                   "\xe0\xa0\x80"sv,
                                   "\xed\xa0\x80"sv,
                                   "\xef\xbf\xbf"sv,
                                   "\xf0\x90\x80\x80"sv,
                                   "\xf3\xbf\xbf\xbf"sv,
                                   "\xf4\x80\x80\x80"sv,
                                   "\xf4\x8f\xbf\xbf"sv,
                                   "\xe0\xa0\x80\xc2\x80z"sv};
  for (const auto text : good) EXPECT_TRUE(is_utf8(text)) << text;
  const std::string_view bad[] = {
      "\x80"sv,         "\xbf"sv,          "\xc0\x80"sv,         "\xc1\xbf"sv,
      "\xc2"sv,         "\xc2z"sv,         "\xc2\xc2"sv,         "\xe0\x9f\xbf"sv,
      "\xe1\x80"sv,     "\xe1\x80z"sv,     "\xe1\xc0\x80"sv,     "\xf0\x8f\xbf\xbf"sv,
      "\xf1\x80\x80"sv, "\xf1\x80\x80z"sv, "\xf4\x90\x80\x80"sv, "\xf5\x80\x80\x80"sv,
      "\xff"sv};
  for (const auto text : bad) EXPECT_FALSE(is_utf8(text)) << text;
}

}  // namespace
}  // namespace reprise
