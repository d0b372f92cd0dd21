// A store that takes a write and does another one must not cost the last good checkpoint. Every
// kind of lie is told at every write of a save that removes an older checkpoint.
#include <gtest/gtest.h>

#include <map>

#include "tests/sim/faults/fault_world.hpp"

namespace reprise::sim {
namespace {

constexpr FaultKind kLies[] = {FaultKind::kShortWrite, FaultKind::kFlipWrite, FaultKind::kZeroWrite,
                               FaultKind::kStaleWrite};

struct Lie {
  FaultKind kind;
  std::int32_t rank;
  int nth;
};

FaultSpec spec_of(const Lie& lie) {
  return {.kind = lie.kind,
          .place = {.rank = {lie.rank}, .nth = lie.nth},
          .bit = 7919U * static_cast<unsigned>(lie.nth + 1)};
}

/// What a save of `step` looked like after which the newest checkpoint is loaded.
struct Ending {
  bool fired = false;
  std::string file = {};
  bool failed = false;
  std::optional<std::int64_t> loaded = {};  ///< nothing if the load refused, or gave wrong bytes
};

/// Saves step 1, then `step` with the lie and retention of one checkpoint.
Ending lied_to(const Lie& lie, std::int64_t step, LifePlan plan = {}) {
  SimStore store;
  save_step(1, store, {.written = plan.written});
  plan.faults = {spec_of(lie)};
  const LifeEnd life = save_step(step, store, plan);
  Ending ending;
  ending.fired = life.faults[0].fired;
  ending.file = life.faults[0].where;
  ending.failed = life.ranks[0].error.has_value();
  for (const auto& rank : life.ranks) {
    EXPECT_FALSE(life.hung);
    EXPECT_EQ(rank.error.has_value(), ending.failed) << "a split";
    if (rank.error) {
      EXPECT_EQ(rank.error->code(), Code::kIo) << rank.error->what();
    }
  }
  const LifeEnd load = load_newest(store);
  ending.loaded = load.ranks[0].step;
  for (const auto& rank : load.ranks) {
    if (rank.step != ending.loaded) ending.loaded.reset();
  }
  return ending;
}

/// Tells every lie at every write. Returns how many fired, for each kind.
template <class Check>
std::map<FaultKind, int> each_lie(std::int64_t step, const LifePlan& plan, const Check& check) {
  std::map<FaultKind, int> fired;
  for (const FaultKind kind : kLies) {
    for (std::int32_t rank = 0; rank < plan.ranks; ++rank) {
      for (int nth = 0;; ++nth) {
        const Ending ending = lied_to({kind, rank, nth}, step, plan);
        if (!ending.fired) break;
        SCOPED_TRACE(to_string(spec_of({kind, rank, nth})) + ": " + ending.file);
        ++fired[kind];
        check(kind, ending);
      }
    }
  }
  return fired;
}

/// True if the bytes that an older checkpoint has in this file are the right ones.
bool is_constant(const std::string& file) {
  return file.find("metadata.json") != std::string::npos;
}

class LyingStore : public testing::TestWithParam<Checksums> {};

TEST_P(LyingStore, costs_the_new_checkpoint_but_not_the_one_before) {
  const auto fired =
      each_lie(2, {.keep = 1, .written = GetParam()}, [](FaultKind kind, const Ending& ending) {
        if (kind == FaultKind::kStaleWrite && is_constant(ending.file)) return;
        EXPECT_TRUE(ending.failed);
        EXPECT_EQ(ending.loaded, 1);
      });
  for (const auto& [kind, times] : fired) EXPECT_GT(times, 10) << name_of(kind);
}

TEST_P(LyingStore, costs_nothing_in_a_save_over_the_last_good_checkpoint) {
  const auto fired = each_lie(1, {.written = GetParam()}, [](FaultKind kind, const Ending& ending) {
    EXPECT_TRUE(ending.failed || kind == FaultKind::kStaleWrite) << "the same state again";
    EXPECT_EQ(ending.loaded, 1);
  });
  for (const auto& [kind, times] : fired) EXPECT_GT(times, 10) << name_of(kind);
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutManifest, LyingStore,
                         testing::Values(Checksums::kCrc32, Checksums::kCrc32AndSha256));

TEST(ReadBack, is_left_out_only_if_nothing_older_goes_or_the_caller_says_so) {
  const Lie hole{FaultKind::kZeroWrite, 1, 1};
  struct Row {
    std::optional<std::int32_t> keep;
    ReadBack read_back;
    bool found;
  };
  for (const Row& row :
       {Row{{}, ReadBack::kBeforeOlderGoes, false}, Row{1, ReadBack::kBeforeOlderGoes, true},
        Row{2, ReadBack::kBeforeOlderGoes, true}, Row{{}, ReadBack::kAlways, true},
        Row{1, ReadBack::kNever, false}}) {
    const Ending ending = lied_to(hole, 2, {.keep = row.keep, .read_back = row.read_back});
    ASSERT_TRUE(ending.fired);
    EXPECT_EQ(ending.failed, row.found) << row.keep.value_or(0) << " " << int(row.read_back);
  }
}

TEST(ReadBack, takes_no_memory_beyond_the_bound_of_the_save) {
  SimStore store;
  const LifeEnd life = save_step(1, store, {.keep = 1});
  for (const auto& rank : life.ranks) {
    EXPECT_FALSE(rank.error);
    EXPECT_GT(rank.peaks.stage, 0U);
    EXPECT_LE(rank.peaks.stage, rank.bound);
  }
}

}  // namespace
}  // namespace reprise::sim
