// Plants two-stage defects in real timelines. Twenty pairs of behaviours were drawn at random from
// those that 2,500 seeds alone did not reach (docs/search.md has the commands and the figures).
// These are the drawn ones that 5,000 timelines of the search reached and 20,000 seeds alone did
// not, each with a timeline of the search that reached it.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/driver/explore/campaign.hpp"

namespace reprise::driver {
namespace {

using reports::Verdict;

struct Planted {
  std::string first = {};
  std::string then = {};
  std::string recipe = {};
};

const std::vector<Planted>& planted_defects() {
  static const std::vector<Planted> defects = {
      {"store: replaced checkpoint left", "read during flip_read -> fell_back, then fell_back",
       "3022999089p/2:0:3034333936/3:0:3020627776/3:1260:1162966006/4:0:4276357603/5:0:3034333936"},
      {"load_plan before crash -> cut_short, then continued",
       "read during read_error -> continued, then cut_short",
       "525326843/1:0:3412456837/2:0:448525196p/3:0:3760834709p/4:0:26309831/5:0:1289027872"},
      {"struck: read", "commit/tracker before crash -> cut_short, then continued",
       "2079334985/0:215:931092562p/1:0:3241474895/1:10:2071127410/2:0:2348951752/"
       "2:1674:2291005036/3:0:2827101239/4:0:4211129877/5:0:782539548"},
  };
  return defects;
}

/// Returns a way to run timelines with a defect: one that reaches the first behaviour in one life
/// and the second in a later one fails.
auto run_with(const Planted& defect) {
  return [defect](const Recipe& recipe, const std::string& mutant) {
    TimelineResult seen = run_timeline(recipe, mutant);
    std::vector<Sighting> all = seen.marks;
    all.insert(all.end(), seen.tuples.begin(), seen.tuples.end());
    const bool fails = std::any_of(all.begin(), all.end(), [&](const Sighting& one) {
      return one.name == defect.first &&
             std::any_of(all.begin(), all.end(), [&](const Sighting& other) {
               return other.name == defect.then && other.life > one.life;
             });
    });
    if (fails) seen.verdict = Verdict::kFail;
    return seen;
  };
}

TEST(Planted, two_stage_defects_fail_the_timelines_that_the_search_found) {
  for (const auto& defect : planted_defects()) {
    SCOPED_TRACE(defect.first + ", then " + defect.then);
    const Recipe recipe = parse_recipe(defect.recipe);
    ExploreRequest request;
    EXPECT_EQ(request.run(recipe, "").verdict, Verdict::kPass);
    request.run = run_with(defect);
    EXPECT_EQ(request.run(recipe, "").verdict, Verdict::kFail);
  }
}

}  // namespace
}  // namespace reprise::driver
