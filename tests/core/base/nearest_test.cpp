#include "core/base/nearest.hpp"

#include <gtest/gtest.h>

namespace reprise {
namespace {

TEST(Nearest, names_the_most_similar_words_once_up_to_the_limit) {
  const std::vector<std::string> words = {"mimo", "rerun", "groups", "rerun", "return", "reruns"};
  using Names = std::vector<std::string>;
  EXPECT_EQ(nearest("rerun", words, 3), (Names{"rerun", "reruns", "return"}));
  EXPECT_EQ(nearest("grups", words, 1), Names{"groups"});
  EXPECT_EQ(nearest("rerun", words, 9).size(), 5U);
  EXPECT_EQ(nearest("flor-vs", {"load-peak", "floor-vs-ceil-chunk"}, 1),
            Names{"floor-vs-ceil-chunk"});
  EXPECT_EQ(nearest("rerun", words, 0), Names{});
  EXPECT_EQ(nearest("rerun", {}, 3), Names{});
}

TEST(Nearest, similar_words_are_those_that_half_of_the_letters_tell) {
  const std::vector<std::string> words = {"rerun", "async", "nth=0", "rerun/persistent"};
  using Names = std::vector<std::string>;
  EXPECT_EQ(similar("rerunn", words, 5), (Names{"rerun", "rerun/persistent"}));
  EXPECT_EQ(similar("reurn", words, 5), Names{"rerun"});
  EXPECT_EQ(similar("zebra", words, 5), Names{});
}

}  // namespace
}  // namespace reprise
