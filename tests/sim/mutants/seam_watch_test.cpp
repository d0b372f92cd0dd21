// The watch over decisions notes which of them a job asks, and changes none.

#include "sim/mutants/seam_watch.hpp"

#include <gtest/gtest.h>

namespace reprise::sim {
namespace {

/// Returns the decisions that cannot be watched.
SeamSet never_watched() {
  take_asked_seams();
  return take_asked_seams();
}

TEST(SeamWatch, each_mutant_replaces_a_decision_of_the_list) {
  for (const auto& mutant : mutants()) EXPECT_TRUE(seams_replaced_by(mutant).any()) << mutant.name;
}

TEST(SeamWatch, the_right_job_replaces_nothing) {
  EXPECT_TRUE(seams_replaced_by({.apply = [](Policies&) {}}).none());
}

TEST(SeamWatch, every_decision_is_watched_or_counts_as_asked) {
  const SeamSet watched = seams_replaced_by({.apply = watch_seams});
  EXPECT_EQ((watched & never_watched()).count(), 0U);
  EXPECT_EQ(never_watched().count(), 3U) << "tracker_step, before_save, save_failed";
  EXPECT_EQ(watched.count() + never_watched().count(), 93U);
}

TEST(SeamWatch, a_decision_is_noted_when_it_is_asked_and_decides_as_before) {
  Policies policies;
  watch_seams(policies);
  const SeamSet never = never_watched();
  EXPECT_EQ(policies.cache_of("weights"), "weights");
  const SeamSet other_cache = seams_replaced_by(
      {.apply = [](Policies& p) { p.cache_of = [](std::string_view) { return std::string(); }; }});
  EXPECT_EQ(take_asked_seams(), other_cache | never);
  EXPECT_EQ(take_asked_seams(), never) << "they were taken";
  EXPECT_EQ(policies.job.slice(5, 2, 0).end, JobPolicy().slice(5, 2, 0).end);
  EXPECT_EQ((take_asked_seams() & ~never).count(), 1U);
}

}  // namespace
}  // namespace reprise::sim
