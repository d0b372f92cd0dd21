// Tests that each random stream is at the position that follows from the number of steps, and that
// no two streams are equal.

#include "driver/judges/rng_judge.hpp"

#include <gtest/gtest.h>

#include "properties/finding_code.hpp"
#include "sim/job/model/host_rng.hpp"

namespace reprise::driver {
namespace {

constexpr std::uint64_t kSeed = 7;

Value advanced(sim::HostRng rng, int steps) {
  for (int i = 0; i < steps; ++i) rng.advance();
  return encode(rng);
}

/// Returns two streams: the host stream of (pp 1, tp 2) in a grid of 2 x 3, and the expert stream
/// of (pp 1, ep 0, etp 1) in a grid of 2 x 2 x 2.
StateDict streams_of(const Value& host, const Value& expert) {
  StateDict state;
  state.objects.push_back({std::string(sim::kRngKey), {2, 3}, {1, 2}, 0, host});
  state.objects.push_back({std::string(sim::kExpertRngKey), {2, 2, 2}, {1, 0, 1}, 0, expert});
  state.objects.push_back({"else", {1}, {0}, 0, Value(1)});
  return state;
}
sim::HostRng host() { return sim::HostRng::fresh(kSeed, 1, 2); }
sim::HostRng expert() { return sim::HostRng::fresh_expert(kSeed, 1, 0, 1); }

judged::Findings judged(const StateDict& state) {
  return judge_streams(GlobalRank{5}, state, {kSeed}, {{"", {.host = 4, .expert = 2}}});
}
void expect_only(const StateDict& state, FindingCode code, const std::string& says) {
  const judged::Findings findings = judged(state);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].code, code) << findings[0];
  EXPECT_EQ(findings[0].rank, GlobalRank{5});
  EXPECT_NE(findings[0].text.find(says), std::string::npos) << findings[0];
}

TEST(RngJudge, each_stream_moved_by_the_steps_since_it_began) {
  EXPECT_TRUE(judged(streams_of(advanced(host(), 4), advanced(expert(), 2))).empty());
}

TEST(RngJudge, a_stream_that_moved_too_far_or_not_at_all_has_drifted) {
  for (const int steps : {0, 3, 5, 20}) {
    expect_only(
        streams_of(advanced(host(), steps), advanced(expert(), 2)), judged::kRngDrift,
        "should have drawn for 4 steps since it began, but has drawn for " + std::to_string(steps));
  }
  expect_only(streams_of(advanced(host(), 4), advanced(expert(), 4)), judged::kRngDrift,
              "should have drawn for 2 steps since it began, but has drawn for 4");
}

TEST(RngJudge, a_stream_of_another_coordinate_has_collapsed) {
  expect_only(streams_of(advanced(sim::HostRng::fresh(kSeed, 1, 0), 4), advanced(expert(), 2)),
              judged::kRngStreamCollapse, "the stream of [1, 2] is that of [1, 0]");
  expect_only(
      streams_of(advanced(host(), 4), advanced(sim::HostRng::fresh_expert(kSeed, 1, 1, 1), 0)),
      judged::kRngStreamCollapse, "the stream of [1, 0, 1] is that of [1, 1, 1]");
}

TEST(RngJudge, a_state_that_no_stream_comes_through_has_drifted) {
  sim::HostRng rng = host();
  rng.host.tally = 1;
  expect_only(streams_of(encode(rng), advanced(expert(), 2)), judged::kRngDrift, "in a state");
  expect_only(streams_of(Value(1), advanced(expert(), 2)), judged::kRngDrift, "in a state");
  expect_only(streams_of(advanced(sim::HostRng::fresh(8, 1, 2), 4), advanced(expert(), 2)),
              judged::kRngDrift, "in a state");
}

// --- jobs of several modules --------------------------------------------------------------------

/// Returns the streams of a rank with two modules. In each module the rank is at (pp 0, tp 1) of 1
/// x 2.
StateDict streams_of_modules(const Value& vision, const Value& language) {
  StateDict state;
  state.objects.push_back({"mimo.vision.rng_state", {1, 2}, {0, 1}, 0, vision});
  state.objects.push_back({"mimo.language.rng_state", {1, 2}, {0, 1}, 0, language});
  return state;
}
sim::HostRng of_module(const std::string& module, std::int32_t tp = 1) {
  return sim::HostRng::fresh(sim::streams_seed(kSeed, module), 0, tp);
}
const Ages kAges = {{"language", {.host = 1}}, {"vision", {.host = 4}}};

void expect_one(const judged::Findings& findings, FindingCode code, const std::string& key,
                const std::string& says) {
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].code, code) << findings[0];
  EXPECT_EQ(findings[0].key, key);
  EXPECT_NE(findings[0].text.find(says), std::string::npos) << findings[0];
}

TEST(RngJudge, the_streams_of_each_module_are_of_an_age_of_their_own) {
  const auto judged_as = [](int vision, int language) {
    return judge_streams(GlobalRank{5},
                         streams_of_modules(advanced(of_module("vision"), vision),
                                            advanced(of_module("language"), language)),
                         {kSeed}, kAges);
  };
  EXPECT_TRUE(judged_as(4, 1).empty());
  expect_one(judged_as(4, 4), judged::kRngDrift, "mimo.language.rng_state/shard_0.1_1.2",
             "should have drawn for 1 step since it began, but has drawn for 4");
  expect_one(judged_as(1, 1), judged::kRngDrift, "mimo.vision.rng_state/shard_0.1_1.2",
             "should have drawn for 4 steps since it began, but has drawn for 1");
}

TEST(RngJudge, a_stream_that_is_another_modules_has_collapsed) {
  for (const int age : {0, 1, 4, 9}) {
    expect_one(judge_streams(GlobalRank{5},
                             streams_of_modules(advanced(of_module("vision"), 4),
                                                advanced(of_module("vision"), age)),
                             {kSeed}, kAges),
               judged::kRngStreamCollapse, "mimo.language.rng_state/shard_0.1_1.2",
               "the stream is that of module vision");
  }
}

TEST(RngJudge, a_module_stream_of_another_place_or_the_whole_run_is_seen) {
  expect_one(judge_streams(GlobalRank{5},
                           streams_of_modules(advanced(of_module("vision", 0), 4),
                                              advanced(of_module("language"), 1)),
                           {kSeed}, kAges),
             judged::kRngStreamCollapse, "mimo.vision.rng_state/shard_0.1_1.2",
             "the stream of [0, 1] is that of [0, 0]");
  expect_one(judge_streams(GlobalRank{5},
                           streams_of_modules(advanced(sim::HostRng::fresh(kSeed, 0, 1), 4),
                                              advanced(of_module("language"), 1)),
                           {kSeed}, kAges),
             judged::kRngDrift, "mimo.vision.rng_state/shard_0.1_1.2", "in a state");
}

TEST(RngJudge, streams_that_differ_by_dp_are_judged_by_their_replica) {
  const auto judged_as = [](std::int32_t replica, std::int32_t dp, bool by_dp) {
    StateDict state;
    const auto rng = sim::HostRng::fresh(sim::streams_seed(kSeed, "vision"), 0, 1, dp);
    state.objects.push_back({"mimo.vision.rng_state", {1, 2}, {0, 1}, replica, advanced(rng, 4)});
    return judge_streams(GlobalRank{5}, state, {kSeed, by_dp}, kAges);
  };
  for (std::int32_t replica = 0; replica < 3; ++replica) {
    for (std::int32_t dp = 0; dp < 3; ++dp) {
      if (dp == replica) {
        EXPECT_TRUE(judged_as(replica, dp, true).empty());
        continue;
      }
      expect_one(judged_as(replica, dp, true), judged::kRngStreamCollapse,
                 "mimo.vision.rng_state/shard_0.1_1.2",
                 "the stream of data-parallel rank " + std::to_string(replica) + " is that of " +
                     std::to_string(dp));
    }
  }
  EXPECT_TRUE(judged_as(2, 0, false).empty()) << "all replicas begin alike";
  EXPECT_EQ(judged_as(2, 2, false).size(), 1U);
}

TEST(RngJudge, expert_streams_of_a_module_do_not_differ_by_dp) {
  StateDict state;
  const auto rng = sim::HostRng::fresh_expert(sim::streams_seed(kSeed, "vision"), 0, 1, 0);
  state.objects.push_back(
      {"mimo.vision.expert_rng_state", {1, 2, 1}, {0, 1, 0}, 3, advanced(rng, 2)});
  EXPECT_TRUE(
      judge_streams(GlobalRank{5}, state, {kSeed, true}, {{"vision", {.host = 4, .expert = 2}}})
          .empty());
}

}  // namespace
}  // namespace reprise::driver
