// Tests which combinations of module grids form a valid job, and the error messages for all others.

#include "sim/job/modules/module_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/contracts/error_of.hpp"

namespace reprise::sim {
namespace {

using contracts::code_of;
using contracts::error_of;
using testing::HasSubstr;

std::vector<GlobalRank> ranks_of(const std::vector<std::int32_t>& numbers) {
  std::vector<GlobalRank> ranks;
  for (const auto number : numbers) ranks.push_back({number});
  return ranks;
}

ModuleConfig module(const std::string& name, const char* layout,
                    const std::vector<std::int32_t>& ranks = {}) {
  return {.name = name, .layout = parse_layout(layout), .ranks = ranks_of(ranks)};
}

using Modules = std::vector<ModuleConfig>;

// --- grids --------------------------------------------------------------------------------------

struct ConfigRow {
  std::string what;
  Modules modules;
  std::int32_t world = 0;
  std::optional<Code> code = {};
  std::vector<std::string> says = {};
};

const std::vector<ConfigRow>& rows() {
  static const std::vector<ConfigRow> all = {
      {"disjoint and tiling", {module("a", "tp2", {0, 1}), module("b", "tp4", {2, 3, 4, 5})}, 6},
      {"disjoint, interleaved", {module("a", "tp2", {0, 2}), module("b", "dp2", {3, 1})}, 4},
      {"three modules",
       {module("a", "tp2", {3, 4}), module("b", "pp2", {0, 1}), module("c", "dp1", {2})},
       5},
      {"all share all", {module("a", "tp2", {0, 1}), module("b", "pp2", {0, 1})}, 2},
      {"all share all, each in an order of its own",
       {module("a", "tp2 dp2", {3, 1, 0, 2}), module("b", "dp4", {0, 1, 2, 3})},
       4},
      {"all share the one rank", {module("a", "tp1"), module("b", "tp1"), module("c", "tp1")}, 1},
      {"one module with a name", {module("a", "tp2")}, 2},
      {"one without a name, on ranks with gaps", {module("", "tp2", {1, 5})}, 8},

      {"one rank is shared",
       {module("a", "tp2", {0, 1}), module("b", "tp2", {1, 2})},
       3,
       Code::kLayoutMismatch,
       {"modules a and b share the ranks 1 and not all", "give each its own"}},
      {"one lies within the other",
       {module("a", "dp4", {0, 1, 2, 3}), module("b", "tp2", {2, 1})},
       4,
       Code::kLayoutMismatch,
       {"modules a and b share the ranks 1 2 and not all"}},
      {"of three, two share all and the third none",
       {module("a", "tp2", {0, 1}), module("b", "tp2", {0, 1}), module("c", "tp2", {2, 3})},
       4,
       Code::kLayoutMismatch,
       {"modules a and b share the ranks 0 1 and not all"}},
      {"of three, the last two overlap",
       {module("a", "dp1", {0}), module("b", "tp2", {1, 2}), module("c", "tp2", {2, 3})},
       4,
       Code::kLayoutMismatch,
       {"modules b and c share the ranks 2 and not all"}},
      {"a gap",
       {module("a", "tp2", {0, 1}), module("b", "tp2", {3, 5})},
       6,
       Code::kLayoutMismatch,
       {"no module is placed on the ranks 2 4", "a: tp2 on 0 1", "b: tp2 on 3 5", "a world of 6"}},
      {"all share, and leave ranks out",
       {module("a", "tp2", {0, 1}), module("b", "dp2", {0, 1})},
       3,
       Code::kLayoutMismatch,
       {"no module is placed on the ranks 2"}},
      {"more ranks than the world has",
       {module("a", "tp2", {0, 1}), module("b", "tp2", {2, 3})},
       3,
       Code::kLayoutMismatch,
       {"a: tp2 on 0 1, b: tp2 on 2 3", "need 4 ranks, and there are 3"}},
      {"one module with a name and a gap",
       {module("a", "tp2", {0, 2})},
       3,
       Code::kLayoutMismatch,
       {"no module is placed on the ranks 1"}},
      {"ranks that are too few for a layout",
       {module("a", "tp2", {0}), module("b", "tp1", {1})},
       2,
       Code::kLayoutMismatch},
      {"one rank twice in a module",
       {module("a", "tp2", {0, 0}), module("b", "tp1", {1})},
       2,
       Code::kLayoutMismatch},

      {"no name among several",
       {module("", "tp1", {0}), module("b", "tp1", {1})},
       2,
       Code::kUsage,
       {"''", "the letters a-z"}},
      {"the same name twice",
       {module("a", "tp1", {0}), module("a", "tp1", {1})},
       2,
       Code::kUsage,
       {"two modules have the name a"}},
  };
  return all;
}

TEST(ModuleConfig, grids_that_make_a_job_and_those_that_are_refused_by_name) {
  for (const auto& row : rows()) {
    SCOPED_TRACE(row.what);
    const auto error = error_of([&] { check_modules(row.modules, row.world); });
    EXPECT_EQ(error ? std::optional(error->code()) : std::nullopt, row.code)
        << (error ? error->what() : "it was taken");
    if (!error) continue;
    for (const auto& words : row.says) EXPECT_THAT(error->message(), HasSubstr(words));
  }
}

TEST(ModuleConfig, grids_are_judged_alike_in_whatever_order_the_modules_stand) {
  for (auto row : rows()) {
    SCOPED_TRACE(row.what);
    std::reverse(row.modules.begin(), row.modules.end());
    EXPECT_EQ(code_of([&] { check_modules(row.modules, row.world); }), row.code);
  }
}

/// Tests two modules, each on any non-empty subset of a world of four ranks.
TEST(ModuleConfig, two_grids_of_4_ranks_must_tile_the_world_or_both_be_whole) {
  constexpr std::int32_t kWorld = 4;
  const auto subset = [](const std::string& name, unsigned bits) {
    ModuleConfig module{.name = name};
    for (std::int32_t rank = 0; rank < kWorld; ++rank) {
      if ((bits >> static_cast<unsigned>(rank) & 1U) != 0) module.ranks.push_back({rank});
    }
    module.layout.dp = static_cast<std::int32_t>(module.ranks.size());
    return module;
  };
  int taken = 0;
  for (unsigned a = 1; a < 16; ++a) {
    for (unsigned b = 1; b < 16; ++b) {
      const bool right = (a == 15 && b == 15) || ((a & b) == 0 && (a | b) == 15);
      const Modules modules = {subset("a", a), subset("b", b)};
      const auto code = code_of([&] { check_modules(modules, kWorld); });
      EXPECT_EQ(code, right ? std::nullopt : std::optional(Code::kLayoutMismatch))
          << to_string(modules);
      taken += right ? 1 : 0;
    }
  }
  EXPECT_EQ(taken, 15);
}

TEST(ModuleConfig, a_name_is_a_word_that_can_stand_in_a_key) {
  for (const auto* name : {"vision", "lm2", "language_model", "_a", "a"}) {
    EXPECT_EQ(code_of([&] { check_modules(Modules{module(name, "tp1")}, 1); }), std::nullopt)
        << name;
  }
  for (const auto* name : {"1", "2nd", "a.b", "a/b", "A", "a-b", "a b", "\xc3\xa4"}) {
    const auto error = error_of([&] { check_modules(Modules{module(name, "tp1")}, 1); });
    ASSERT_TRUE(error.has_value()) << name;
    EXPECT_EQ(error->code(), Code::kUsage);
    EXPECT_THAT(error->message(), HasSubstr(name));
  }
  EXPECT_EQ(module_prefix("vision"), "mimo.vision.");
  EXPECT_EQ(module_prefix(""), "");
}

// --- ranks --------------------------------------------------------------------------------------

TEST(ModuleConfig, side_by_side_deals_consecutive_ranks_to_modules_without_any) {
  const auto dealt = side_by_side({module("a", "tp2"), module("b", "tp2 dp2"), module("c", "tp1")});
  EXPECT_EQ(to_string(dealt), "a: tp2 on 0 1, b: tp2 dp2 on 2 3 4 5, c: tp1 on 6");
  const auto named = side_by_side({module("a", "tp2", {5, 3}), module("b", "tp2")});
  EXPECT_EQ(to_string(named), "a: tp2 on 5 3, b: tp2 on 0 1");
}

TEST(ModuleConfig, members_follow_the_layout_or_ascend_if_there_are_modules) {
  const auto members = [](const Modules& modules) { return job_members(modules).members(); };
  EXPECT_EQ(members({module("", "tp2 dp2", {3, 1, 0, 2})}), ranks_of({3, 1, 0, 2}));
  EXPECT_EQ(members({module("", "tp2")}), ranks_of({0, 1}));
  EXPECT_EQ(members({module("a", "tp2", {3, 1}), module("b", "dp2", {2, 0})}),
            ranks_of({0, 1, 2, 3}));
  EXPECT_EQ(members({module("a", "tp2", {1, 0}), module("b", "dp2", {0, 1})}), ranks_of({0, 1}));
}

TEST(ModuleConfig, a_table_of_grids_that_are_the_same) {
  const Modules own = {module("a", "tp2", {0, 1}), module("b", "dp2", {2, 3})};
  struct Pair {
    std::string what;
    Modules other;
    bool same = false;
  };
  const std::vector<Pair> pairs = {
      {"itself", own, true},
      {"another layout", {module("a", "dp2", {0, 1}), module("b", "dp2", {2, 3})}},
      {"other ranks", {module("a", "tp2", {2, 3}), module("b", "dp2", {0, 1})}},
      {"permuted ranks", {module("a", "tp2", {1, 0}), module("b", "dp2", {2, 3})}},
      {"another order of axes",
       {module("a", "tp2 order dp-tp", {0, 1}), module("b", "dp2", {2, 3})}},
      {"another name", {module("a", "tp2", {0, 1}), module("c", "dp2", {2, 3})}},
      {"one module less", {module("a", "tp2", {0, 1})}},
      {"one more",
       {module("a", "tp2", {0, 1}), module("b", "dp2", {2, 3}), module("c", "tp1", {4})}},
  };
  for (const auto& pair : pairs) {
    EXPECT_EQ(same_grids(own, pair.other), pair.same) << pair.what;
    EXPECT_EQ(same_grids(pair.other, own), pair.same) << pair.what;
  }
  const Modules dealt = {module("a", "tp2")};
  EXPECT_TRUE(same_grids(dealt, Modules{module("a", "tp2", {0, 1})}))
      << "the default ranks are 0 .. n-1";
  EXPECT_TRUE(same_grids(Modules{module("", "tp2", {4, 5})}, Modules{module("", "tp2")}))
      << "for one model only layouts count";
  EXPECT_FALSE(same_grids(Modules{module("", "tp2")}, Modules{module("", "dp2")}));
}

TEST(ModuleConfig, what_else_a_module_is_does_not_count_among_grids) {
  ModuleConfig other = module("a", "tp2");
  other.frozen = true;
  other.optimizer_sharding = Sharding::kDpReshardable;
  EXPECT_TRUE(same_grids(Modules{module("a", "tp2")}, Modules{other}));
}

TEST(ModuleConfig, is_found_by_name_and_printed) {
  const Modules modules = {module("a", "tp2", {1, 0}), module("b", "dp2", {2, 3})};
  EXPECT_EQ(module_named(modules, "b"), &modules[1]);
  EXPECT_EQ(module_named(modules, "c"), nullptr);
  EXPECT_EQ(to_string(modules), "a: tp2 on 1 0, b: dp2 on 2 3");
  EXPECT_EQ(to_string(Modules{module("", "tp2 dp2")}), "tp2 dp2");
}

}  // namespace
}  // namespace reprise::sim
