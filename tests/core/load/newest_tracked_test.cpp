// If the ranks of a job see different trackers, the job must continue from the newest iteration
// that any of these trackers names.

#include <gtest/gtest.h>

#include "core/seams/load_seams.hpp"

namespace reprise {
namespace {

constexpr std::nullopt_t kNone = std::nullopt;

TEST(NewestTracked, is_the_newest_that_any_rank_names_whoever_leads) {
  struct Row {
    TrackedSteps tracked;
    std::optional<Step> newest;
  };
  const std::vector<Row> rows = {{{Step{3}}, Step{3}},
                                 {{Step{3}, Step{3}}, Step{3}},
                                 {{Step{3}, Step{5}, Step{4}}, Step{5}},
                                 {{Step{5}, Step{3}}, Step{5}},
                                 {{kNone, Step{0}}, Step{0}},
                                 {{Step{2}, kNone}, Step{2}},
                                 {{kNone, kNone}, kNone}};
  for (const Row& row : rows) {
    for (std::size_t leader = 0; leader < row.tracked.size(); ++leader) {
      EXPECT_EQ(newest_tracked(row.tracked, {static_cast<std::int32_t>(leader)}), row.newest);
    }
  }
}

}  // namespace
}  // namespace reprise
