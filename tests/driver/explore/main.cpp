// Runs the tests, or measures the search with a campaign (campaign.hpp).

#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "tests/driver/explore/campaign.hpp"

namespace reprise::driver {
namespace {

/// The words are: campaign, guided or alone, timelines, seed, threads, file.
int run_campaign(const std::vector<std::string>& words) {
  ExploreRequest request;
  request.alone = words.at(1) == "alone";
  request.runs_max = std::stoull(words.at(2));
  request.seed = std::stoull(words.at(3));
  request.jobs = std::stoull(words.at(4));
  std::ofstream out(words.at(5));
  const std::uint64_t failed = write_campaign(request, out);
  std::cout << failed << " timelines did not pass\n";
  return failed == 0 && out ? 0 : 1;
}

/// The words are: pairs, file of the guided search, file of seeds alone, and the three numbers of
/// PairDraw.
int run_pairs(const std::vector<std::string>& words) {
  std::ifstream guided(words.at(1));
  std::ifstream alone(words.at(2));
  const PairDraw draw{.easy = std::stoull(words.at(3)),
                      .count = std::stoull(words.at(4)),
                      .seed = std::stoull(words.at(5))};
  print_pairs(read_campaign(guided), read_campaign(alone), draw, std::cout);
  return 0;
}

}  // namespace
}  // namespace reprise::driver

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 6 && words.front() == "campaign") return reprise::driver::run_campaign(words);
  if (words.size() == 6 && words.front() == "pairs") return reprise::driver::run_pairs(words);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
