#pragma once
// Campaigns that measure the search: which ordered pairs of behaviours do timelines reach?
//
//   test_driver_explore campaign guided 5000 1 2 guided.txt      5,000 timelines of seed 1, 2
//   threads test_driver_explore campaign alone 20000 1 2 alone.txt test_driver_explore pairs
//   guided.txt alone.txt 2500 20 1
//
// A two-stage defect "fails if behaviour A was reached in one life and behaviour B in a later one"
// has no influence on a search until it is found. So one campaign measures all such defects at
// once: each is found by the first timeline that reached its pair. The last command compares the
// two campaigns, leaves out the pairs that the first 2,500 seeds alone reached, and draws 20 others
// with seed 1, to be planted as defects.

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "driver/explore/explore.hpp"

namespace reprise::driver {

/// A timeline of a campaign: its recipe, and the behaviours of each life as numbers.
struct CampaignTimeline {
  std::string recipe = {};
  std::vector<std::vector<std::uint32_t>> lives = {};
};

struct Campaign {
  std::vector<std::string> names = {};  ///< of the behaviours, by number
  std::vector<CampaignTimeline> timelines = {};
};

/// Runs a search and writes each of its timelines. Returns the number of timelines that failed.
std::uint64_t write_campaign(ExploreRequest request, std::ostream& out);
/// Reads what write_campaign() wrote.
Campaign read_campaign(std::istream& in);

/// Two behaviours; the second was reached in a later life than the first.
using Pair = std::pair<std::string, std::string>;
/// Maps each pair to the number of the first timeline that reached it.
using FirstTimelines = std::map<Pair, std::size_t>;
FirstTimelines first_timelines(const Campaign& campaign);

/// Chooses pairs to plant as defects: `count` of those that the first seeds alone did not reach.
struct PairDraw {
  std::size_t easy = 2500;  ///< pairs that so many seeds alone reach are left out
  std::size_t count = 20;
  std::uint64_t seed = 1;
};
/// Compares a guided campaign with one of seeds alone, and prints the drawn pairs with the
/// timelines that reached them first.
void print_pairs(const Campaign& guided, const Campaign& alone, const PairDraw& draw,
                 std::ostream& out);

}  // namespace reprise::driver
