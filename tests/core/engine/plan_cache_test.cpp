// What is reused from save to save, what is not, and that nobody can tell from the bytes.

#include <gtest/gtest.h>

#include <atomic>

#include "tests/core/engine/cache_world.hpp"

namespace reprise {
namespace {

using contracts::TemporaryDirectory;
using test::CacheWorld;
using test::Edit;
using test::files_of;
using test::Kit;
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

/// The same saves without a cache write the same bytes.
void expect_bytes_of_fresh_plans(const std::string& directory, CacheWorld world,
                                 const std::vector<Turn>& saves) {
  const TemporaryDirectory fresh;
  world.kinds.reset();
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

std::vector<Saved> run_like_fresh(CacheWorld& world, const std::vector<Turn>& saves) {
  const TemporaryDirectory directory;
  auto all = world.run(directory.path(), saves);
  expect_bytes_of_fresh_plans(directory.path(), world, saves);
  return all;
}

using Kinds = std::vector<CacheKind>;

// --- constant structure -------------------------------------------------------------------------

std::atomic<int> covers = 0;
std::atomic<int> descriptions = 0;

/// Called for each tensor that no placement explains, whenever a rank plans for all.
std::optional<CoverDefect> counted_cover(const Dims& shape, std::span<const Box> boxes) {
  ++covers;
  return prove_cover(shape, boxes);
}
/// Called whenever a rank describes what it offers.
Interval counted_describe(std::int64_t length, std::int64_t parts, std::int64_t index) {
  ++descriptions;
  return ceil_chunk(length, parts, index);
}

TEST(PlanCache, local_plan_is_reused_from_the_second_save_and_the_global_one_from_the_third) {
  CacheWorld world(kRanks);
  const auto all = run_like_fresh(world, turns(4));
  EXPECT_EQ(all[0].planned, Planned::kFresh);
  EXPECT_EQ(all[0].reused, Kinds{});
  EXPECT_EQ(all[1].planned, Planned::kReused);
  EXPECT_EQ(all[1].reused, (Kinds{CacheKind::kLocal, CacheKind::kDistribution}));
  for (const std::size_t s : {2, 3}) {
    EXPECT_EQ(all[s].planned, Planned::kReused);
    EXPECT_EQ(all[s].reused, (Kinds{CacheKind::kLocal, CacheKind::kGlobal}));
  }
  EXPECT_EQ(world.replans, 0U);
}

TEST(PlanCache, a_reused_plan_is_not_made) {
  const auto counts_after = [](std::size_t saves) {
    const TemporaryDirectory directory;
    CacheWorld world(kRanks);
    world.policy.plan.cover = counted_cover;
    world.policy.plan.describe = counted_describe;
    covers = 0;
    descriptions = 0;
    world.run(directory.path(), turns(saves));
    return std::pair(covers.load(), descriptions.load());
  };
  const auto first = counts_after(1);
  const auto second = counts_after(2);
  EXPECT_GT(first.first, 0);
  EXPECT_EQ(second.first, 2 * first.first) << "the global plan is made twice";
  EXPECT_LT(second.second, 2 * first.second) << "the local one is not";
  EXPECT_EQ(counts_after(3), second);
  EXPECT_EQ(counts_after(5), second);
}

TEST(PlanCache, each_set_of_caches_writes_the_same_bytes_and_reuses_what_it_keeps) {
  for (unsigned set = 0; set < 32; ++set) {
    Kinds kinds;
    for (const CacheKind kind : cache_kinds()) {
      if ((set >> static_cast<unsigned>(kind) & 1U) != 0) kinds.push_back(kind);
    }
    CacheWorld world(2);
    world.kinds = kinds;
    const auto keeps = [&kinds](CacheKind kind) {
      return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
    };
    const auto all = run_like_fresh(world, turns(3));
    const bool global = keeps(CacheKind::kGlobal);
    EXPECT_EQ(all[1].used(CacheKind::kLocal), keeps(CacheKind::kLocal)) << set;
    EXPECT_FALSE(all[1].used(CacheKind::kGlobal)) << set;
    EXPECT_EQ(all[1].used(CacheKind::kDistribution), keeps(CacheKind::kDistribution)) << set;
    EXPECT_EQ(all[2].used(CacheKind::kLocal), keeps(CacheKind::kLocal)) << set;
    EXPECT_EQ(all[2].used(CacheKind::kGlobal), global) << set;
    EXPECT_EQ(all[2].used(CacheKind::kDistribution), keeps(CacheKind::kDistribution) && !global)
        << set;
    EXPECT_EQ(world.replans, 0U) << set;
  }
}

// --- changes of structure -----------------------------------------------------------------------

struct Change {
  std::string name;
  std::function<void(Kit&, std::int32_t at)> edit;
  std::function<std::vector<std::string>(std::int32_t at)> log;  ///< after the first line
};

std::string on(const std::string& key, const std::string& verb, const std::string& ranks) {
  return "key " + key + " " + verb + " on " + ranks;
}
std::string rank_named(std::int32_t at) { return "rank " + std::to_string(at); }
std::string own(std::int32_t at) { return "own" + std::to_string(at); }
std::string note(std::int32_t at) { return "note" + std::to_string(at) + "/shard_0_1"; }
std::int32_t other(std::int32_t at) { return at == 0 ? 1 : 0; }
std::string pair_named(std::int32_t at) { return at < 2 ? "ranks 0 1" : "ranks 0 2"; }

/// The main copy goes from rank 0 to `at`, or from 0 to 1.
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

TEST(PlanCache, every_change_on_every_rank_is_seen_and_named_and_planned_for) {
  for (const Change& change : changes()) {
    for (std::int32_t at = 0; at < kRanks; ++at) {
      const Edit edit = [&](Kit& kit) { change.edit(kit, at); };
      CacheWorld world(kRanks);
      const auto saves = turns(3) + turns(3, edit) + turns(1);
      const auto all = run_like_fresh(world, saves);
      const std::string row = change.name + " on rank " + std::to_string(at);
      for (const auto& saved : all) EXPECT_FALSE(saved.error) << row << saved.error->what();
      EXPECT_EQ(all[2].planned, Planned::kReused) << row;
      EXPECT_EQ(all[3].planned, Planned::kReplanned) << row;
      EXPECT_EQ(all[3].reused, Kinds{}) << row;
      std::vector<std::string> log = change.log(at);
      log.insert(log.begin(), "plans are made again");
      EXPECT_EQ(all[3].log, log) << row;
      EXPECT_TRUE(all[5].used(CacheKind::kGlobal)) << row;
      EXPECT_EQ(all[5].log, std::vector<std::string>{}) << row;
      EXPECT_EQ(all[6].planned, Planned::kReplanned) << row;
      EXPECT_EQ(world.replans, 2U) << row;
    }
  }
}

TEST(PlanCache, a_change_on_all_ranks_is_named_once_and_many_are_counted) {
  CacheWorld world(kRanks);
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

TEST(PlanCache, the_order_of_leaves_and_the_memory_they_stand_in_are_no_structure) {
  CacheWorld world(kRanks);
  const Edit edit = [](Kit& kit) {
    std::reverse(kit.state.tensors.begin(), kit.state.tensors.end());
    std::reverse(kit.state.objects.begin(), kit.state.objects.end());
  };
  const auto all = run_like_fresh(world, turns(2) + turns(2, edit));
  EXPECT_TRUE(all[2].used(CacheKind::kGlobal));
  EXPECT_TRUE(all[3].used(CacheKind::kGlobal));
}

TEST(PlanCache, a_rank_that_lost_its_cache_makes_all_plan_again) {
  for (std::int32_t at = 0; at < kRanks; ++at) {
    CacheWorld world(kRanks);
    auto saves = turns(5);
    saves[3].forgetful = {{at}};
    const TemporaryDirectory directory;
    const auto all = world.run(directory.path(), saves);
    expect_bytes_of_fresh_plans(directory.path(), world, saves);
    EXPECT_EQ(all[3].reused, Kinds{});
    EXPECT_TRUE(all[4].used(CacheKind::kLocal));
  }
}

TEST(PlanCache, a_common_state_that_diverges_is_refused_however_often_the_plan_was_reused) {
  CacheWorld world(kRanks);
  const Edit diverge = [](Kit& kit) {
    kit.state.common = Dict{{"iteration", Value(std::int64_t{kit.rank() == 1 ? 8 : 9})}};
  };
  const TemporaryDirectory directory;
  const auto all = world.run(directory.path(), turns(3) + turns(1, diverge) + turns(1));
  ASSERT_TRUE(all[3].error);
  EXPECT_EQ(all[3].error->code(), Code::kCommonStateDiverges);
  EXPECT_TRUE(all[4].used(CacheKind::kGlobal)) << "and the cache is as it was";
}

}  // namespace
}  // namespace reprise
