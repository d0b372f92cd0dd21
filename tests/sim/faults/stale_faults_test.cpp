// Gives one rank an outdated view of the store. Tests which tracker and which checkpoint this rank
// and the other ranks then see.

#include <gtest/gtest.h>

#include "core/checkpoint/stored_tracker.hpp"
#include "core/format/tracker.hpp"
#include "core/ports/store_path.hpp"
#include "tests/sim/faults/fault_world.hpp"

namespace reprise::sim {
namespace {

struct Seen {
  std::optional<Step> tracked;
  bool stands = false;  ///< true if stat finds the directory of step 2
  bool listed = false;  ///< true if listing the root shows that directory
  bool opens = false;   ///< true if a file in that directory can be opened
};

Seen look(Store& store) {
  Seen seen{.tracked = tracked_step(store, kRoot)};
  const std::string directory = join_path(kRoot, directory_of(Tracker{Step{2}}));
  seen.stands = store.stat(directory).has_value();
  for (const auto& entry : store.list(kRoot)) {
    seen.listed = seen.listed || join_path(kRoot, entry.name) == directory;
  }
  try {
    store.open(directory + "/.metadata");
    seen.opens = true;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kNotFound) << error.what();
  }
  return seen;
}

/// Saves these steps. Then runs `program` on two ranks; rank 1 has a fault of this kind.
LifeEnd life_with(FaultKind kind, const std::vector<std::int64_t>& steps,
                  const std::function<void(Store& store, GroupRank rank)>& program) {
  SimStore store;
  for (const auto step : steps) save_step(step, store);
  store.sync_all();
  LifeEnd life = live({.faults = {{.kind = kind, .place = {.rank = {1}}}}}, store,
                      [&](const Ports& ports, const std::shared_ptr<Communicator>& group,
                          LifeEnd::Rank&, SmallState&) { program(ports.store, group->rank()); });
  EXPECT_TRUE(life.faults.front().fired);
  return life;
}

std::vector<Seen> seen_with(FaultKind kind) {
  std::vector<Seen> seen(2);
  life_with(kind, {1, 2}, [&](Store& store, GroupRank rank) {
    seen[static_cast<std::size_t>(rank.value)] = look(store);
  });
  return seen;
}

TEST(StaleFaults, a_stale_tracker_names_the_old_checkpoint_on_that_rank_only) {
  const auto seen = seen_with(FaultKind::kStaleTracker);
  EXPECT_EQ(seen[0].tracked, Step{2});
  EXPECT_EQ(seen[1].tracked, Step{1});
  for (const auto& rank : seen) EXPECT_TRUE(rank.stands && rank.listed && rank.opens);
}

TEST(StaleFaults, a_stale_store_lacks_the_newest_checkpoint_in_every_call) {
  const auto seen = seen_with(FaultKind::kStaleStore);
  EXPECT_EQ(seen[0].tracked, Step{2});
  EXPECT_TRUE(seen[0].stands && seen[0].listed && seen[0].opens);
  EXPECT_EQ(seen[1].tracked, Step{1});
  EXPECT_FALSE(seen[1].stands || seen[1].listed || seen[1].opens);
}

TEST(StaleFaults, where_there_is_no_checkpoint_before_the_plan_is_refused) {
  const LifeEnd life = life_with(FaultKind::kStaleTracker, {2}, [](Store& store, GroupRank) {
    store.open(join_path(kRoot, std::string(kTrackerFile)));
  });
  ASSERT_TRUE(life.ranks[1].error);
  EXPECT_EQ(life.ranks[1].error->code(), Code::kUsage) << life.ranks[1].error->what();
  EXPECT_FALSE(life.ranks[0].error);
}

}  // namespace
}  // namespace reprise::sim
