// Tests what a save tells of itself, and what it does when its ranks were told to stop or hold
// copies that are not the same.

#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/api/calls.hpp"
#include "reprise/reprise.hpp"
#include "sim/world/sim_store.hpp"
#include "sim/world/world.hpp"

namespace reprise::save_options_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int32_t kRanks = 3;

class SaveOptionsOnRanks : public testing::Test {
 protected:
  using Program = std::function<void(Job&, std::int32_t rank)>;
  using Interrupted = std::function<bool(std::int32_t rank)>;

  std::vector<std::string> run(const Program& program, const Interrupted& interrupted = {}) {
    sim::World world({.seed = 3, .world_size = kRanks, .background = background_}, store_);
    std::vector<std::string> complaints(kRanks);
    world.run([&](Ports& ports, GlobalRank rank) {
      JobPorts own = borrowed_ports(ports);
      if (interrupted) own.interrupted = [&, rank] { return interrupted(rank.value); };
      Job job(std::move(own));
      try {
        program(job, rank.value);
      } catch (const Error& error) {
        complaints[static_cast<std::size_t>(rank.value)] = error.what();
      }
    });
    return complaints;
  }

  sim::SimStore store_{"sim:"};
  sim::Background background_ = sim::Background::kAnyTime;
};

/// Row `rank` of a tensor of `kRanks` rows.
TensorPart row_of(std::int32_t rank, std::vector<float>& memory) {
  return {.offset = {rank, 0},
          .extent = {1, static_cast<std::int64_t>(memory.size())},
          .data = memory.data()};
}

void add_row(State& state, const std::string& key, std::int32_t rank, std::vector<float>& memory) {
  const TensorPart part = row_of(rank, memory);
  state.add(key, DType::kFloat32, {kRanks, static_cast<std::int64_t>(memory.size())}, {&part, 1});
}

TEST_F(SaveOptionsOnRanks, a_plan_is_reused_until_a_change_which_is_told_by_key) {
  std::vector<std::vector<Planned>> planned(kRanks);
  std::vector<std::string> log;
  const auto done = run([&](Job& job, std::int32_t rank) {
    std::vector<float> memory(4, 1);
    const auto state_of = [&](bool more) {
      State state;
      add_row(state, "w", rank, memory);
      if (more) state.add_bytes("of." + std::to_string(rank), {std::byte{1}});
      return state;
    };
    const auto saved = [&](const State& state, const std::string& structure = "training") {
      return save(job, state, {.directory = "run", .structure = structure});
    };
    auto& own = planned[static_cast<std::size_t>(rank)];
    for (int i = 0; i < 4; ++i) own.push_back(saved(state_of(false)).planned);
    own.push_back(saved(state_of(false), "weights").planned);
    own.push_back(saved(state_of(false), "").planned);
    const SaveResult changed = saved(state_of(rank == 2));
    own.push_back(changed.planned);
    if (rank == 0) log = changed.log;
    own.push_back(saved(state_of(rank == 2)).planned);
    own.push_back(saved(state_of(rank == 2)).planned);
  });
  EXPECT_THAT(done, Each(std::string()));
  EXPECT_THAT(planned, Each(planned.front()));
  EXPECT_EQ(planned.front()[0], Planned::kFresh);
  EXPECT_EQ(planned.front()[3], Planned::kReused);
  EXPECT_EQ(planned.front()[4], Planned::kFresh) << "another structure";
  EXPECT_EQ(planned.front()[5], Planned::kFresh) << "none is kept";
  EXPECT_EQ(planned.front()[6], Planned::kReplanned);
  EXPECT_THAT(log, Contains(AllOf(HasSubstr("key of.2 appeared"), HasSubstr("rank 2"))));
  EXPECT_EQ(planned.front()[8], Planned::kReused);
}

TEST_F(SaveOptionsOnRanks, copies_that_are_not_the_same_are_told_with_key_and_ranks) {
  std::vector<std::vector<UnequalCopy>> unequal(kRanks);
  std::vector<std::string> log;
  const auto saves = [&](UnequalCopies how, bool differs) {
    return run([&, how, differs](Job& job, std::int32_t rank) {
      State state;
      state.add_bytes("lr", {std::byte{5}});
      state.add_bytes("rng", {std::byte(differs ? (rank == 0 ? 1 : 2) : 3)});
      state.add_bytes("of." + std::to_string(rank), {std::byte(rank)});
      state.add_object("scheduler", {.coordinate = {0}, .grid = {1}, .replica = rank},
                       Value(differs && rank == 1 ? 7 : 8));
      const SaveResult saved = save(job, state, {.directory = "run", .unequal = how});
      unequal[static_cast<std::size_t>(rank)] = saved.unequal;
      if (rank == 0) log = saved.log;
    });
  };
  EXPECT_THAT(saves(UnequalCopies::kRefused, false), Each(std::string()));
  EXPECT_THAT(unequal, Each(IsEmpty()));

  EXPECT_THAT(saves(UnequalCopies::kReported, true), Each(std::string()));
  for (const auto& own : unequal) {
    ASSERT_EQ(own.size(), 2U);
    EXPECT_EQ(own[0].key, "rng");
    EXPECT_EQ(own[0].writer, 0);
    EXPECT_THAT(own[0].holders, ElementsAre(1, 2));
    EXPECT_EQ(own[1].key, "scheduler/shard_0_1");
    EXPECT_THAT(own[1].holders, ElementsAre(1));
  }
  EXPECT_THAT(log, Contains(AllOf(HasSubstr("key rng"), HasSubstr("rank 0"), HasSubstr("1 2"))));

  EXPECT_THAT(saves(UnequalCopies::kRefused, true),
              Each(AllOf(HasSubstr("COMMON_STATE_DIVERGES"), HasSubstr("key rng"))));
}

TEST_F(SaveOptionsOnRanks, copies_of_boxes_are_compared_if_that_is_asked_for) {
  std::vector<std::vector<UnequalCopy>> unequal(kRanks);
  const auto saves = [&](SaveOptions options, bool differs) {
    options.directory = "run";
    return run([&, options, differs](Job& job, std::int32_t rank) {
      std::vector<float> whole(700'000, 1);
      std::vector<float> half(4, 2);
      if (differs && rank == 2) whole.back() = 3;
      if (differs && rank == 0) half.front() = -2;
      State state;
      state.add("whole", DType::kFloat32, {700'000},
                std::array{TensorPart{.offset = {0}, .extent = {700'000}, .data = whole.data()}});
      // Ranks 0 and 1 hold the first half, and rank 2 the second.
      state.add("half", DType::kFloat32, {8},
                std::array{
                    TensorPart{.offset = {rank == 2 ? 4 : 0}, .extent = {4}, .data = half.data()}});
      unequal[static_cast<std::size_t>(rank)] = save(job, state, options).unequal;
    });
  };
  EXPECT_THAT(saves({}, true), Each(std::string()));
  EXPECT_THAT(unequal, Each(IsEmpty())) << "nobody asked";
  EXPECT_THAT(saves({.compare_tensors = true}, false), Each(std::string()));
  EXPECT_THAT(unequal, Each(IsEmpty()));

  EXPECT_THAT(saves({.compare_tensors = true}, true), Each(std::string()));
  for (const auto& own : unequal) {
    ASSERT_EQ(own.size(), 2U);
    EXPECT_EQ(own[0].key, "half");
    EXPECT_EQ(own[0].offset, Dims{0});
    EXPECT_EQ(own[0].writer + own[0].holders.at(0), 1) << "ranks 0 and 1 hold it";
    EXPECT_EQ(own[1].key, "whole");
    EXPECT_NE(own[1].writer, 2);
    EXPECT_THAT(own[1].holders, ElementsAre(2));
  }
  EXPECT_THAT(saves({.unequal = UnequalCopies::kRefused, .compare_tensors = true}, true),
              Each(AllOf(HasSubstr("COMMON_STATE_DIVERGES"), HasSubstr("key half at [0]"))));
}

TEST_F(SaveOptionsOnRanks, staging_is_as_large_as_what_is_written_unless_it_has_a_limit) {
  background_ = sim::Background::kLate;  // nothing is written while there is something to copy
  std::vector<SaveResult> all(kRanks);
  const auto saves = [&](std::optional<std::uint64_t> limit) {
    const auto done = run([&, limit](Job& job, std::int32_t rank) {
      std::vector<float> memory(3'000'000, 1);  // 12 MB: more than a batch
      State state;
      add_row(state, "w", rank, memory);
      auto saving = begin_save(job, state, {.directory = "run", .staging_bytes = limit});
      all[static_cast<std::size_t>(rank)] = saving.finish();
    });
    EXPECT_THAT(done, Each(std::string()));
  };
  saves({});
  for (const SaveResult& result : all) {
    EXPECT_GE(result.staging_bytes, 12'000'000U);
    EXPECT_FALSE(result.waited_for_staging);
  }
  saves(4'000'000);
  for (const SaveResult& result : all) {
    EXPECT_LE(result.staging_bytes, 4'000'000U);
    EXPECT_TRUE(result.waited_for_staging);
  }
}

TEST_F(SaveOptionsOnRanks, a_stop_on_one_rank_stops_all_and_nothing_becomes_visible) {
  for (const bool saves : {true, false}) {
    std::atomic<int> asked = 0;
    std::vector<float> kept(4, 2);
    const auto done = run(
        [&](Job& job, std::int32_t rank) {
          std::vector<float> memory(4, 1);
          State state;
          add_row(state, "w", rank, memory);
          if (saves) {
            save(job, state, {.directory = "run"});
          } else {
            load(job, state, {.directory = "before"});
          }
        },
        [&](std::int32_t rank) { return rank == 1 && ++asked >= 1; });
    EXPECT_THAT(done, Each(AllOf(HasSubstr("INTERRUPTED"), HasSubstr("rank 1")))) << saves;
    EXPECT_FALSE(store_.stat("run/.metadata").has_value());
    if (!saves) continue;
    EXPECT_THAT(run([&](Job& job, std::int32_t rank) {
                  std::vector<float> memory(4, 1);
                  State state;
                  add_row(state, "w", rank, memory);
                  save(job, state, {.directory = "before"});
                }),
                Each(std::string()))
        << "what was interrupted keeps nobody out";
  }
}

/// Two tensors that all ranks hold, and bytes: the job decides who writes what.
TEST_F(SaveOptionsOnRanks, a_plan_of_the_job_decides_who_writes) {
  using Share = std::vector<WriteItem>;
  const auto with = [&](const std::vector<Share>& shares) {
    return run([&](Job& job, std::int32_t rank) {
      std::vector<float> memory(6, 1);
      const std::vector<TensorPart> halves = {
          {.offset = {0}, .extent = {3}, .data = memory.data()},
          {.offset = {3}, .extent = {3}, .data = memory.data() + 3}};
      State state;
      state.add("w", DType::kFloat32, {6}, halves);
      state.add_bytes("lr", {std::byte{1}});
      const SaveResult saved =
          save(job, state, {.directory = "run"}, shares[static_cast<std::size_t>(rank)]);
      EXPECT_EQ(saved.bytes == 0, shares[static_cast<std::size_t>(rank)].empty()) << rank;
      std::vector<float> whole(6);
      const TensorPart part{.offset = {0}, .extent = {6}, .data = whole.data()};
      State into;
      into.add("w", DType::kFloat32, {6}, {&part, 1});
      into.add_bytes("lr", {std::byte{9}});
      load(job, into, {.directory = "run"});
      EXPECT_EQ(whole, memory);
    });
  };
  EXPECT_THAT(with({{}, {{"w", {3}}}, {{"w", {0}}, {"lr"}}}), Each(std::string()));
  EXPECT_THAT(with({{{"lr"}}, {{"w", {3}}}, {}}),
              Each(AllOf(HasSubstr("NO_WRITER"), HasSubstr("key w"))));
  EXPECT_THAT(with({{}, {{"w", {3}}}, {{"w", {0}}}}),
              Each(AllOf(HasSubstr("NO_WRITER"), HasSubstr("key lr"))));
  EXPECT_THAT(with({{{"lr"}}, {{"w", {3}}}, {{"w", {0}}, {"w", {3}}}}),
              Each(AllOf(HasSubstr("MULTI_WRITER"), HasSubstr("ranks 1 and 2"))));
  EXPECT_THAT(with({{{"lr"}}, {{"w", {2}}}, {{"w", {0}}, {"w", {3}}}}),
              Each(AllOf(HasSubstr("NO_WRITER"), HasSubstr("does not hold"), HasSubstr("rank 1"))));
}

TEST_F(SaveOptionsOnRanks, a_device_without_streams_refuses_one_on_all_ranks) {
  int stream = 0;
  const auto done = run([&](Job& job, std::int32_t rank) {
    std::vector<float> memory(4, 1);
    State state;
    add_row(state, "w", rank, memory);
    save(job, state, {.directory = "run", .stream = rank == 1 ? &stream : nullptr});
  });
  EXPECT_THAT(done, Each(AllOf(HasSubstr("USAGE"), HasSubstr("has no streams"))));
}

}  // namespace
}  // namespace reprise::save_options_test
