// Random streams stand where the steps since they began say, and no two are the same.

#include "scenarios/driver/rng_judge.hpp"

#include <gtest/gtest.h>

#include "sim/job/host_rng.hpp"

namespace reprise::driver {
namespace {

constexpr std::uint64_t kSeed = 7;

Value advanced(sim::HostRng rng, int steps) {
  for (int i = 0; i < steps; ++i) rng.advance();
  return encode(rng);
}

/// The host stream of (pp 1, tp 2) of 2 x 3, the expert stream of (pp 1, ep 0, etp 1) of 2 x 2 x 2.
StateDict streams_of(const Value& host, const Value& expert) {
  StateDict state;
  state.objects.push_back({std::string(sim::kRngKey), {2, 3}, {1, 2}, 0, host});
  state.objects.push_back({std::string(sim::kExpertRngKey), {2, 2, 2}, {1, 0, 1}, 0, expert});
  state.objects.push_back({"else", {1}, {0}, 0, Value(1)});
  return state;
}
sim::HostRng host() { return sim::HostRng::fresh(kSeed, 1, 2); }
sim::HostRng expert() { return sim::HostRng::fresh_expert(kSeed, 1, 0, 1); }

Rulings judged(const StateDict& state) {
  return judge_streams(GlobalRank{5}, state, kSeed, {.host = 4, .expert = 2});
}
void expect_only(const StateDict& state, Defect defect, const std::string& says) {
  const Rulings rulings = judged(state);
  ASSERT_EQ(rulings.size(), 1U);
  EXPECT_EQ(rulings[0].defect, defect) << rulings[0];
  EXPECT_EQ(rulings[0].rank, GlobalRank{5});
  EXPECT_NE(rulings[0].message.find(says), std::string::npos) << rulings[0];
}

TEST(RngJudge, each_stream_moved_by_the_steps_since_it_began) {
  EXPECT_TRUE(judged(streams_of(advanced(host(), 4), advanced(expert(), 2))).empty());
}

TEST(RngJudge, a_stream_that_moved_too_far_or_not_at_all_has_drifted) {
  for (const int steps : {0, 3, 5, 20}) {
    expect_only(
        streams_of(advanced(host(), steps), advanced(expert(), 2)), Defect::kRngDrift,
        "should have drawn for 4 steps since it began, and has drawn for " + std::to_string(steps));
  }
  expect_only(streams_of(advanced(host(), 4), advanced(expert(), 4)), Defect::kRngDrift,
              "should have drawn for 2 steps since it began, and has drawn for 4");
}

TEST(RngJudge, a_stream_of_another_coordinate_has_collapsed) {
  expect_only(streams_of(advanced(sim::HostRng::fresh(kSeed, 1, 0), 4), advanced(expert(), 2)),
              Defect::kRngStreamCollapse, "the stream of [1, 2] is that of [1, 0]");
  expect_only(
      streams_of(advanced(host(), 4), advanced(sim::HostRng::fresh_expert(kSeed, 1, 1, 1), 0)),
      Defect::kRngStreamCollapse, "the stream of [1, 0, 1] is that of [1, 1, 1]");
}

TEST(RngJudge, a_state_that_no_stream_comes_through_has_drifted) {
  sim::HostRng rng = host();
  rng.tally = 1;
  expect_only(streams_of(encode(rng), advanced(expert(), 2)), Defect::kRngDrift, "in no state");
  expect_only(streams_of(Value(1), advanced(expert(), 2)), Defect::kRngDrift, "in no state");
  expect_only(streams_of(advanced(sim::HostRng::fresh(8, 1, 2), 4), advanced(expert(), 2)),
              Defect::kRngDrift, "in no state");
}

}  // namespace
}  // namespace reprise::driver
