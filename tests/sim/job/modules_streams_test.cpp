// Tests the random streams of modules, in training and in checkpoints.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/job/module_worlds.hpp"

namespace reprise::sim {
namespace {

using testing::HasSubstr;

TEST(ModulesStreams, random_streams_of_modules_differ_and_move_alike) {
  const auto modules = [](const char* a, const char* b) {
    return job_of({module_on("a", "audio-tiny", a), module_on("b", "audio-tiny", b)});
  };
  const Life life = trained_on(modules("tp2", "tp2"), 2);
  std::set<std::string> seen;
  for (const auto* module : {"a", "b"}) {
    for (const auto* place : {"0.0", "0.1"}) {
      const auto streams = decode_rng(
          object_in(life, "mimo." + std::string(module) + ".rng_state/shard_" + place + "_1.2"));
      ASSERT_EQ(streams.size(), 1U);
      EXPECT_TRUE(seen.insert(std::to_string(streams[0].host.seed)).second);
      EXPECT_TRUE(seen.insert(std::to_string(streams[0].host.tally)).second);
      EXPECT_EQ(streams[0].host.counter, 6U) << "three numbers for each step";
    }
  }
  const HostRng plain = HostRng::fresh(7, 0, 0);
  EXPECT_FALSE(seen.contains(std::to_string(plain.host.seed))) << "the seed of a job of one model";
}

/// Returns each rank's own stream of a module, by global rank.
std::map<std::int32_t, HostRng> streams_of(SimStore& store, const JobConfig& config, int steps,
                                           bool loads, std::vector<std::string>* notes = nullptr) {
  std::map<std::int32_t, HostRng> streams;
  const Life life = live_on(store, config, [&](const Seat& seat) {
    if (loads) seat.load();
    seat.train(steps);
    for (const auto& module : seat.job.modules()) {
      streams[seat.job.rank().value] = module.streams.host;
    }
    if (!loads) seat.save();
  });
  EXPECT_TRUE(life.ended_well());
  if (notes != nullptr) *notes = life.notes.front();
  return streams;
}

JobConfig by_dp(const char* a, const char* b) {
  JobConfig config = job_of({module_on("a", "audio-tiny", a), module_on("b", "audio-tiny", b)});
  config.training.random_by_dp = true;
  return config;
}

TEST(ModulesStreams, streams_that_differ_by_dp_are_a_list_of_all_dp_ranks) {
  SimStore store;
  const Life life = live_on(
      store, by_dp("tp2", "cp2 dp2"), [](const Seat& seat) { seat.train(1); }, handed_over);
  ASSERT_TRUE(life.ended_well());
  for (const auto& finding : life.findings) ADD_FAILURE() << finding;
  EXPECT_EQ(decode_rng(object_in(life, "mimo.a.rng_state/shard_0.1_1.2")).size(), 1U);
  const auto streams = decode_rng(object_in(life, "mimo.b.rng_state/shard_0.0_1.1"));
  ASSERT_EQ(streams.size(), 4U);
  std::set<std::uint64_t> seeds;
  for (std::int32_t dp = 0; dp < 4; ++dp) {
    HostRng fresh = HostRng::fresh(streams_seed(7, "b"), 0, 0, dp);
    fresh.advance();
    EXPECT_EQ(streams[static_cast<std::size_t>(dp)], fresh) << dp;
    seeds.insert(fresh.host.seed);
  }
  EXPECT_EQ(seeds.size(), 4U);
}

TEST(ModulesStreams, each_dp_rank_takes_its_own_stream_again) {
  SimStore store;
  const auto saved = streams_of(store, by_dp("dp2", "tp2 dp2"), 3, false);
  JobConfig fresh = by_dp("dp2", "tp2 dp2");
  fresh.training.seed = 99;
  EXPECT_EQ(streams_of(store, fresh, 0, true), saved);
}

TEST(ModulesStreams, streams_that_differ_by_dp_begin_anew_under_another_dp) {
  SimStore store;
  const auto saved = streams_of(store, by_dp("dp2", "tp2"), 3, false);
  std::vector<std::string> notes;
  const auto now = streams_of(store, by_dp("dp3", "tp2"), 0, true, &notes);
  for (std::int32_t r = 0; r < 3; ++r) {
    EXPECT_EQ(now.at(r), HostRng::fresh(streams_seed(7, "a"), 0, 0, r));
  }
  EXPECT_EQ(now.at(3), saved.at(2)) << "the other module's streams";
  EXPECT_EQ(now.at(4), saved.at(3));
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0], HasSubstr("mimo.a.rng_state"));
  EXPECT_THAT(notes[0], HasSubstr("start anew"));
}

TEST(ModulesStreams, streams_come_back_only_in_modules_with_the_same_tp_and_pp) {
  const auto modules = [](const char* a, const char* b) {
    return job_of({module_on("a", "audio-tiny", a), module_on("b", "audio-tiny", b)});
  };
  SimStore store;
  const auto saved = streams_of(store, modules("tp2", "pp2"), 3, false);
  std::vector<std::string> notes;
  const auto now = streams_of(store, modules("tp2 dp2", "dp2"), 0, true, &notes);
  EXPECT_EQ(now.at(0), saved.at(0));
  EXPECT_EQ(now.at(1), saved.at(1));
  EXPECT_EQ(now.at(2), saved.at(0));
  EXPECT_EQ(now.at(4), HostRng::fresh(streams_seed(7, "b"), 0, 0));
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0], HasSubstr("the random states mimo.b.rng_state are of"));
}

}  // namespace
}  // namespace reprise::sim
