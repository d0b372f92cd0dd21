// Tests saves that use the plan of an earlier save. They must write the same bytes as saves that
// plan anew.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <iterator>

#include "tests/fixtures/repeated_saves.hpp"

namespace reprise {
namespace {

using contracts::TemporaryDirectory;
using test::Edit;
using test::files_of;
using test::Kit;
using test::RepeatedSaves;
using test::Saved;
using test::Turn;

constexpr std::int32_t kRanks = 3;

std::vector<Turn> turns(std::size_t count, const Edit& edit = {}) {
  return std::vector<Turn>(count, Turn{edit, {}, {}});
}

std::vector<Turn> operator+(std::vector<Turn> a, const std::vector<Turn>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Requires that the same saves write the same bytes if each plans anew.
void expect_bytes_of_fresh_plans(const std::string& directory, RepeatedSaves world,
                                 const std::vector<Turn>& saves) {
  const TemporaryDirectory fresh;
  world.keeps_plan = false;
  world.run(fresh.path(), saves);
  const auto expected = files_of(fresh.path());
  const auto found = files_of(directory);
  EXPECT_GT(expected.size(), saves.size());
  ASSERT_EQ(expected.size(), found.size());
  for (const auto& [path, content] : expected) {
    ASSERT_TRUE(found.contains(path)) << path;
    EXPECT_TRUE(found.at(path) == content) << path << " has other bytes";
  }
}

std::vector<Saved> run_like_fresh(RepeatedSaves& world, const std::vector<Turn>& saves) {
  const TemporaryDirectory directory;
  auto all = world.run(directory.path(), saves);
  expect_bytes_of_fresh_plans(directory.path(), world, saves);
  return all;
}

// --- saves of one structure ---------------------------------------------------------------------

std::atomic<int> covers = 0;
std::atomic<int> descriptions = 0;

/// Counts how often it is called. A rank that plans for all ranks calls it once for each tensor
/// whose boxes do not follow from a placement.
std::optional<CoverDefect> counted_cover(const Dims& shape, std::span<const Box> boxes) {
  ++covers;
  return prove_cover(shape, boxes);
}
/// Counts how often it is called. A rank calls it to describe the tensors that it can save.
Interval counted_describe(std::int64_t length, std::int64_t parts, std::int64_t index) {
  ++descriptions;
  return ceil_chunk(length, parts, index);
}

const std::vector<std::string> kUsedAgain = {"the plan of an earlier save is used again"};

TEST(KeptPlan, is_used_from_the_second_save_on) {
  RepeatedSaves world(kRanks);
  const auto all = run_like_fresh(world, turns(4));
  EXPECT_EQ(all[0].planned, Planned::kFresh);
  EXPECT_TRUE(all[0].log.empty());
  for (const std::size_t s : {1, 2, 3}) {
    EXPECT_EQ(all[s].planned, Planned::kReused);
    EXPECT_EQ(all[s].log, kUsedAgain);
  }
  EXPECT_EQ(world.replans, 0U);
}

TEST(KeptPlan, is_not_made_again) {
  const auto counts_after = [](std::size_t saves) {
    const TemporaryDirectory directory;
    RepeatedSaves world(kRanks);
    world.seams.plan.cover = counted_cover;
    world.seams.plan.describe = counted_describe;
    covers = 0;
    descriptions = 0;
    world.run(directory.path(), turns(saves));
    return std::pair(covers.load(), descriptions.load());
  };
  const auto first = counts_after(1);
  EXPECT_GT(first.first, 0);
  EXPECT_GT(first.second, 0);
  EXPECT_EQ(counts_after(2), first);
  EXPECT_EQ(counts_after(5), first);
}

// --- saves of a changed structure ---------------------------------------------------------------

struct Change {
  std::string name;
  std::function<void(Kit&, std::int32_t at)> edit;
  std::function<std::vector<std::string>(std::int32_t at)> log;  ///< log lines after the first one
};

std::string on(const std::string& key, const std::string& verb, const std::string& ranks) {
  return "key " + key + " " + verb + " on " + ranks;
}
std::string rank_named(std::int32_t at) { return "rank " + std::to_string(at); }
std::string own(std::int32_t at) { return "own" + std::to_string(at); }
std::string note(std::int32_t at) { return "note" + std::to_string(at) + "/shard_0_1"; }
std::int32_t other(std::int32_t at) { return at == 0 ? 1 : 0; }
std::string pair_named(std::int32_t at) { return at < 2 ? "ranks 0 1" : "ranks 0 2"; }

/// Ranks 0 and `at` swap the replica numbers of their copies, so that the main copy moves from one
/// to the other. Given a copy's number before the swap, returns its number after the swap. If `at`
/// is 0, ranks 0 and 1 swap.
std::int32_t swapped(std::int32_t replica, std::int32_t at) {
  const std::int32_t main = std::max(at, 1);
  if (replica == 0) return main;
  return replica == main ? 0 : replica;
}

std::vector<Change> changes() {
  const auto on_own = [](const std::function<void(Kit&, TensorLeaf&)>& edit) {
    return [edit](Kit& kit, std::int32_t at) {
      if (kit.rank() == at) edit(kit, kit.tensor(kit.own()));
    };
  };
  const auto own_changed = [](std::int32_t at) {
    return std::vector{on(own(at), "changed", rank_named(at))};
  };
  return {
      {"a tensor appears",
       [](Kit& kit, std::int32_t at) {
         if (kit.rank() == at) kit.add("late", DType::kFloat32, {2}, {{{0}, {2}}}, 0);
       },
       [](std::int32_t at) { return std::vector{on("late", "appeared", rank_named(at))}; }},
      {"a tensor vanishes",
       [](Kit& kit, std::int32_t at) {
         if (kit.rank() != at) return;
         std::erase_if(kit.state.tensors,
                       [&kit](const TensorLeaf& leaf) { return leaf.key == kit.own(); });
       },
       [](std::int32_t at) { return std::vector{on(own(at), "vanished", rank_named(at))}; }},
      {"a tensor gets another name", on_own([](Kit&, TensorLeaf& leaf) { leaf.key = "renamed"; }),
       [](std::int32_t at) {
         return std::vector{on("renamed", "appeared", rank_named(at)),
                            on(own(at), "vanished", rank_named(at))};
       }},
      {"a shape", on_own([](Kit& kit, TensorLeaf& leaf) {
         leaf.shape = {7};
         kit.place(leaf, {{{0}, {7}}});
       }),
       own_changed},
      {"a dtype", on_own([](Kit&, TensorLeaf& leaf) { leaf.dtype = DType::kInt32; }), own_changed},
      {"offsets", on_own([](Kit& kit, TensorLeaf& leaf) {
         kit.place(leaf, {{{0}, {2}}, {{2}, {4}}});
       }),
       own_changed},
      {"a placement", on_own([](Kit& kit, TensorLeaf& leaf) {
         const std::vector<GlobalRank> alone = {{kit.rank()}};
         leaf.placed = {std::make_shared<const Mesh>(std::vector<Axis>{{"dp", 1}}, Group(alone)),
                        Placement({{"dp", 0}})};
       }),
       own_changed},
      {"boxes of two ranks",
       [](Kit& kit, std::int32_t at) {
         const std::int32_t to = other(at);
         if (kit.rank() != at && kit.rank() != to) return;
         const std::int64_t from = kit.rank() == at ? to : at;
         kit.place(kit.tensor("flat"), {{{5 * from}, {5}}});
       },
       [](std::int32_t at) { return std::vector{on("flat", "changed", pair_named(at))}; }},
      {"the main copy of a tensor",
       [](Kit& kit, std::int32_t at) {
         TensorLeaf& leaf = kit.tensor("same");
         leaf.replica = swapped(leaf.replica, at);
       },
       [](std::int32_t at) { return std::vector{on("same", "changed", pair_named(at))}; }},
      {"an object appears",
       [](Kit& kit, std::int32_t at) {
         if (kit.rank() == at) kit.state.objects.push_back({"late", {1}, {0}, 0, Value(true)});
       },
       [](std::int32_t at) {
         return std::vector{on("late/shard_0_1", "appeared", rank_named(at))};
       }},
      {"an object vanishes",
       [](Kit& kit, std::int32_t at) {
         if (kit.rank() != at) return;
         std::erase_if(kit.state.objects,
                       [&kit](const ObjectLeaf& leaf) { return leaf.key == kit.note(); });
       },
       [](std::int32_t at) { return std::vector{on(note(at), "vanished", rank_named(at))}; }},
      {"an object's grid",
       [](Kit& kit, std::int32_t at) {
         if (kit.rank() != at) return;
         kit.object(kit.note()).grid = {1, 1};
         kit.object(kit.note()).coordinate = {0, 0};
       },
       [](std::int32_t at) {
         const std::string wider = "note" + std::to_string(at) + "/shard_0.0_1.1";
         return std::vector{on(wider, "appeared", rank_named(at)),
                            on(note(at), "vanished", rank_named(at))};
       }},
      {"objects' coordinates",
       [](Kit& kit, std::int32_t at) {
         const std::int32_t to = other(at);
         if (kit.rank() != at && kit.rank() != to) return;
         kit.object("rng").coordinate = {kit.rank() == at ? to : at};
       },
       [](std::int32_t at) {
         std::vector<std::string> lines;
         const std::int32_t low = std::min(at, other(at));
         const std::int32_t high = std::max(at, other(at));
         const auto shard = [](std::int32_t c) { return "rng/shard_" + std::to_string(c) + "_3"; };
         lines.push_back(on(shard(low), "appeared", rank_named(high)));
         lines.push_back(on(shard(high), "appeared", rank_named(low)));
         lines.push_back(on(shard(low), "vanished", rank_named(low)));
         lines.push_back(on(shard(high), "vanished", rank_named(high)));
         return lines;
       }},
      {"the main copy of an object",
       [](Kit& kit, std::int32_t at) {
         ObjectLeaf& leaf = kit.object("alike");
         leaf.replica = swapped(leaf.replica, at);
       },
       [](std::int32_t at) {
         return std::vector{on("alike/shard_0_1", "changed", pair_named(at))};
       }},
  };
}

TEST(KeptPlan, every_change_on_every_rank_is_seen_and_named_and_planned_for) {
  for (const Change& change : changes()) {
    for (std::int32_t at = 0; at < kRanks; ++at) {
      const Edit edit = [&](Kit& kit) { change.edit(kit, at); };
      RepeatedSaves world(kRanks);
      const auto saves = turns(3) + turns(3, edit) + turns(1);
      const auto all = run_like_fresh(world, saves);
      const std::string row = change.name + " on rank " + std::to_string(at);
      for (const auto& saved : all) EXPECT_FALSE(saved.error) << row << saved.error->what();
      EXPECT_EQ(all[2].planned, Planned::kReused) << row;
      EXPECT_EQ(all[3].planned, Planned::kReplanned) << row;
      std::vector<std::string> log = change.log(at);
      log.insert(log.begin(), "the save is planned again");
      EXPECT_EQ(all[3].log, log) << row;
      EXPECT_EQ(all[4].planned, Planned::kReused) << row;
      EXPECT_EQ(all[5].log, kUsedAgain) << row;
      EXPECT_EQ(all[6].planned, Planned::kReplanned) << row;
      EXPECT_EQ(world.replans, 2U) << row;
    }
  }
}

TEST(KeptPlan, a_change_on_all_ranks_is_named_once_and_many_are_counted) {
  RepeatedSaves world(kRanks);
  const Edit edit = [](Kit& kit) {
    for (int i = 0; i < 11; ++i) {
      kit.add("more" + std::to_string(i), DType::kFloat32, {2}, {{{0}, {2}}}, kit.rank());
    }
  };
  const auto all = run_like_fresh(world, turns(1) + turns(1, edit));
  ASSERT_EQ(all[1].log.size(), 10U);
  EXPECT_EQ(all[1].log[1], "key more0 appeared on all ranks");
  EXPECT_EQ(all[1].log[9], "3 more keys appeared");
}

TEST(KeptPlan, order_and_memory_of_leaves_do_not_change_the_structure) {
  RepeatedSaves world(kRanks);
  const Edit edit = [](Kit& kit) {
    std::reverse(kit.state.tensors.begin(), kit.state.tensors.end());
    std::reverse(kit.state.objects.begin(), kit.state.objects.end());
  };
  const auto all = run_like_fresh(world, turns(2) + turns(2, edit));
  EXPECT_EQ(all[2].planned, Planned::kReused);
  EXPECT_EQ(all[3].planned, Planned::kReused);
}

TEST(KeptPlan, a_rank_that_lost_it_makes_all_plan_again) {
  for (std::int32_t at = 0; at < kRanks; ++at) {
    RepeatedSaves world(kRanks);
    auto saves = turns(5);
    saves[3].forgetful = {{at}};
    const TemporaryDirectory directory;
    const auto all = world.run(directory.path(), saves);
    expect_bytes_of_fresh_plans(directory.path(), world, saves);
    EXPECT_EQ(all[3].planned, Planned::kReplanned);
    EXPECT_EQ(std::count(all[3].log.begin(), all[3].log.end(),
                         "ranks keep different plans, or their common states differ"),
              1);
    EXPECT_EQ(all[4].planned, Planned::kReused);
  }
}

TEST(KeptPlan, a_diverging_common_state_is_refused_however_often_reused) {
  RepeatedSaves world(kRanks);
  const Edit diverge = [](Kit& kit) {
    kit.state.common = Dict{{"iteration", Value(std::int64_t{kit.rank() == 1 ? 8 : 9})}};
  };
  const TemporaryDirectory directory;
  const auto all = world.run(directory.path(), turns(3) + turns(1, diverge) + turns(1));
  ASSERT_TRUE(all[3].error);
  EXPECT_EQ(all[3].error->code(), Code::kCommonStateDiverges);
  EXPECT_EQ(all[4].planned, Planned::kReused) << "what was kept must be unchanged";
}

// --- saves that fail ----------------------------------------------------------------------------

const Edit kLate = [](Kit& kit) {
  kit.state.objects.push_back({"late", {kit.world()}, {kit.rank()}, 0, Value(true)});
};

/// Returns six saves: three without an edit, one with the edit `fourth`, which must fail, and two
/// with the edit `last`.
std::vector<Turn> failing_fourth(const Edit& fourth, const Edit& last) {
  return turns(3) + turns(1, fourth) + turns(2, last);
}

TEST(KeptPlan, a_save_that_fails_anywhere_leaves_it_as_it_was) {
  const Edit two_writers = [](Kit& kit) {
    kLate(kit);
    if (kit.rank() == 1) kit.tensor("same").replica = 0;
  };
  struct Row {
    std::string what;
    Edit edit;
    std::string file;  ///< file that the fourth save fails to write
    Code code;
  };
  const std::vector<Row> rows = {
      {"planning", two_writers, "", Code::kMultiWriter},
      {"payload of rank 0", kLate, "__0_0.distcp", Code::kNoSpace},
      {"payload of rank 2", kLate, "__2_0.distcp", Code::kNoSpace},
      {"metadata", kLate, ".metadata", Code::kNoSpace},
      {"common state", kLate, "common.pt", Code::kNoSpace},
  };
  for (const Row& row : rows) {
    for (const Edit& last : {Edit{}, kLate}) {
      RepeatedSaves world(kRanks);
      if (!row.file.empty()) {
        world.before_write = [&row](const std::string& path) {
          if (path.find("iter_0000004") == std::string::npos || !path.ends_with(row.file)) return;
          throw Error(Code::kNoSpace, "no space left", {.file = path});
        };
      }
      const TemporaryDirectory directory;
      const auto all = world.run(directory.path(), failing_fourth(row.edit, last));
      ASSERT_TRUE(all[3].error) << row.what;
      EXPECT_EQ(all[3].error->code(), row.code) << all[3].error->what();
      EXPECT_FALSE(all[4].error) << row.what;
      if (!last) {
        EXPECT_EQ(all[4].planned, Planned::kReused) << row.what;
        EXPECT_EQ(world.replans, 1U) << row.what;
      } else {
        EXPECT_EQ(all[4].planned, Planned::kReplanned) << row.what;
        EXPECT_EQ(all[5].planned, Planned::kReused) << row.what;
        EXPECT_EQ(world.replans, 2U) << row.what;
      }
    }
  }
}

TEST(KeptPlan, what_a_failed_save_remembered_is_checked_at_the_next_save) {
  for (const Edit& last : {Edit{}, kLate}) {
    RepeatedSaves world(kRanks);
    world.keeps_failed_offer = true;
    world.before_write = [](const std::string& path) {
      if (path.find("iter_0000004") == std::string::npos) return;
      throw Error(Code::kNoSpace, "no space left", {.file = path});
    };
    const TemporaryDirectory directory;
    const auto all = world.run(directory.path(), failing_fourth(kLate, last));
    ASSERT_TRUE(all[4].error);
    EXPECT_EQ(all[4].error->code(), Code::kCachePoisoned) << all[4].error->what();
  }
}

// --- plans that do not fit ----------------------------------------------------------------------

bool fits_anything(const SaveScope&, const SaveScope&) { return true; }

/// In this test, a kept plan is used after any change, because structures are not compared. If the
/// plan lacks something that should be saved, it must be refused.
TEST(KeptPlan, a_plan_that_lacks_something_is_refused_without_comparison) {
  for (const Change& change : changes()) {
    if (change.name.starts_with("the main copy") || change.name == "a placement") continue;
    for (std::int32_t at = 0; at < kRanks; ++at) {
      for (const std::size_t before : {1, 2}) {
        RepeatedSaves world(kRanks);
        world.seams.cache.fits = fits_anything;
        const TemporaryDirectory directory;
        const auto all =
            world.run(directory.path(),
                      turns(before) + turns(1, [&](Kit& kit) { change.edit(kit, at); }) + turns(1));
        const std::string row = change.name + " on rank " + std::to_string(at);
        ASSERT_TRUE(all[before].error) << row;
        EXPECT_EQ(all[before].error->code(), Code::kStalePlan) << row << all[before].error->what();
        EXPECT_FALSE(all[before + 1].error) << row;
      }
    }
  }
}

TEST(KeptPlan, with_both_checks_off_an_added_object_is_lost_silently) {
  RepeatedSaves world(kRanks);
  world.seams.cache.fits = fits_anything;
  world.seams.cache.unplanned = [](std::span<const std::string>) {};
  const TemporaryDirectory directory;
  const auto all = world.run(directory.path(), turns(1) + turns(1, kLate));
  EXPECT_FALSE(all[1].error);
  PosixStore store(directory.path());
  const auto stored = Checkpoint::open(store, "run");
  EXPECT_EQ(stored.location().step, Step{2});
  EXPECT_EQ(stored.catalog().object("late/shard_0_3"), nullptr);
  EXPECT_NE(stored.catalog().object("rng/shard_0_3"), nullptr);
}

// --- owners -------------------------------------------------------------------------------------

/// Returns every group of rank 0 and any of the ranks 1 to 3. A group of several ranks is returned
/// twice: with its ranks in ascending order and in descending order.
std::vector<std::vector<GlobalRank>> groups_with_rank_0() {
  std::vector<std::vector<GlobalRank>> groups;
  for (unsigned set = 0; set < 8; ++set) {
    std::vector<GlobalRank> members = {{0}};
    for (std::int32_t r = 1; r < 4; ++r) {
      if ((set >> static_cast<unsigned>(r - 1) & 1U) != 0) members.push_back({r});
    }
    groups.push_back(members);
    if (members.size() == 1) continue;
    std::reverse(members.begin(), members.end());
    groups.push_back(members);
  }
  return groups;
}

TEST(KeptPlan, of_one_group_is_not_reused_for_another_with_its_lowest_rank) {
  for (const auto& first : groups_with_rank_0()) {
    for (const auto& second : groups_with_rank_0()) {
      RepeatedSaves world(4);
      const std::vector<Turn> saves = {{{}, first, {}}, {{}, second, {}}};
      const auto all = run_like_fresh(world, saves);
      EXPECT_EQ(all[1].planned == Planned::kReused, first == second);
    }
  }
}

std::uint64_t key_by_smallest_rank(const SaveScope& scope) {
  return static_cast<std::uint64_t>(
      std::min_element(scope.savers.begin(), scope.savers.end())->value);
}

TEST(KeptPlan, owners_under_a_weak_key_are_refused_or_leave_gaps_unverified) {
  for (const auto& [verified, code] :
       {std::pair{true, Code::kStaleDistribution}, std::pair{false, Code::kNoWriter}}) {
    RepeatedSaves world(4);
    world.seams.cache.distribution_key = key_by_smallest_rank;
    if (!verified) world.seams.cache.verify_distribution = [](const auto&, const auto&) {};
    const TemporaryDirectory directory;
    const Edit more = [](Kit& kit) {
      kit.add("late", DType::kInt8, {3}, {{{0}, {3}}}, kit.rank());
    };
    const auto all = world.run(directory.path(), turns(1) + turns(1, more));
    ASSERT_TRUE(all[1].error);
    EXPECT_EQ(all[1].error->code(), code) << all[1].error->what();
  }
}

}  // namespace
}  // namespace reprise
