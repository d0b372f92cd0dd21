// Tests how a campaign is written, read and compared.

#include "tests/driver/explore/campaign.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace reprise::driver {
namespace {

/// Runs a search of two timelines in which `first` comes in life 0, and `second` in life 2 of the
/// second timeline.
Campaign campaign_of(const std::string& first, const std::string& second) {
  ExploreRequest request;
  request.alone = true;
  request.runs_max = 2;
  std::size_t runs = 0;
  request.run = [&](const Recipe&, const std::string&) {
    TimelineResult seen;
    seen.marks = {{first, 0}};
    if (++runs == 2) seen.tuples = {{second, 2}};
    return seen;
  };
  std::stringstream text;
  EXPECT_EQ(write_campaign(request, text), 0U);
  return read_campaign(text);
}

TEST(Campaign, is_read_as_it_is_written) {
  const Campaign campaign = campaign_of("load: continued", "commit crash -> cut_short, then none");
  EXPECT_EQ(campaign.names,
            (std::vector<std::string>{"load: continued", "commit crash -> cut_short, then none"}));
  ASSERT_EQ(campaign.timelines.size(), 2U);
  using Lives = std::vector<std::vector<std::uint32_t>>;
  EXPECT_EQ(campaign.timelines[0].lives, (Lives{{0}, {}, {}, {}, {}, {}}));
  EXPECT_EQ(campaign.timelines[1].lives, (Lives{{0}, {}, {1}, {}, {}, {}}));
  EXPECT_NO_THROW(parse_recipe(campaign.timelines[1].recipe));
}

TEST(Campaign, a_pair_is_two_behaviours_of_different_lives) {
  Campaign campaign{.names = {"a", "b"}};
  campaign.timelines.push_back({.lives = {{0, 1}, {}, {}}});
  campaign.timelines.push_back({.lives = {{1}, {0}, {0}}});
  campaign.timelines.push_back({.lives = {{1}, {}, {0}}});
  EXPECT_EQ(first_timelines(campaign), (FirstTimelines{{{"b", "a"}, 1}, {{"a", "a"}, 1}}));
}

TEST(Campaign, is_compared_with_seeds_alone) {
  const Campaign guided = campaign_of("a", "b");
  const Campaign alone = campaign_of("a", "c");
  std::ostringstream out;
  print_pairs(guided, alone, {.easy = 1, .count = 2, .seed = 1}, out);
  const std::string text = out.str();
  EXPECT_NE(text.find("guided: 2 timelines reach 1 pairs, 1 of them not reached"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("2 pairs were not reached by the first 1 seeds alone"), std::string::npos)
      << text;
  EXPECT_NE(text.find("a\n  then b\n  guided: 2 " + guided.timelines[1].recipe +
                      "\n  alone: not reached\n"),
            std::string::npos)
      << text;
  out.str("");
  print_pairs(guided, alone, {.easy = 2}, out);
  EXPECT_NE(out.str().find("1 pairs were not"), std::string::npos) << out.str();
}

}  // namespace
}  // namespace reprise::driver
