// Plants two-stage defects in real timelines. Twenty pairs of behaviours were drawn at random from
// those that 2,500 seeds alone did not reach (docs/explore.md has the commands and the figures).
// These are the drawn ones that 5,000 timelines of the search reached and 11,500 seeds alone did
// not, each with the first timeline of the search that reached it.

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
      {"read during read_error -> refused, then cut_short",
       "metadata during crash -> cut_short, then refused",
       "2292345700/2:0:3452247369/3:0:2304139996p/4:0:3106992213p/5:0:3452247369"},
      {"read during read_error -> refused, then fell_back", "load: fell back to an earlier life",
       "2922559229/2:0:1887026555/3:0:2474721674p/4:0:3630692472/5:0:829425542p"},
      {"store: unfinished save left",
       "commit/backend_info during no_space -> continued, then cut_short",
       "1308836950p/1:0:250931130/2:0:1775066966/3:0:589006555/4:0:296570103/5:0:3002070357p"},
      {"store: unfinished save left",
       "commit/tracker during fleeting_rename -> continued, then cut_short",
       "1308836950p/2:0:4017548491p/3:0:1672632123/4:0:1744837726p/5:0:2787697819"},
      {"load_plan after crash -> cut_short, then continued",
       "commit/manifest after crash -> cut_short, then continued",
       "3288213683/1:0:3525203469/2:0:26309831/2:1435:682094673p/3:0:296570103/4:0:3452247369"},
      {"retention/remove during crash -> cut_short, then cut_short", "left in: save prepare",
       "1317287605p/1:0:4258364049/2:0:931401197/3:0:3508511860/4:0:361938566"},
      {"struck: commit/remove_replaced",
       "commit/read_back during crash -> cut_short, then cut_short",
       "1762508787/1:0:912809061/1:235:3248236892/2:0:2763488369/3:0:1996723216/4:0:1303949294"},
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
