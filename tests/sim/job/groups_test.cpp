// Tests the groups of a job, with the axes in every order and with arbitrary ranks. The caller
// passes all of the groups, some of them, or none.

#include "sim/job/groups/groups.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "core/base/codes.hpp"
#include "core/base/print.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/sim/job/job_worlds.hpp"

namespace reprise::sim {
namespace {

using contracts::code_of;
using contracts::error_of;
using testing::HasSubstr;

std::vector<std::string> all_orders() {
  std::vector<std::string_view> names(kAxisNames.begin(), kAxisNames.end());
  std::sort(names.begin(), names.end());
  std::vector<std::string> orders;
  do {
    orders.push_back(join(names, "-"));
  } while (std::next_permutation(names.begin(), names.end()));
  return orders;
}

std::vector<GlobalRank> ranks_from(std::vector<std::int32_t> numbers) {
  std::vector<GlobalRank> ranks;
  for (const auto number : numbers) ranks.push_back({number});
  return ranks;
}

/// Returns permuted ranks that begin at 3 and have gaps.
std::vector<GlobalRank> odd_ranks(std::int32_t count) {
  std::vector<GlobalRank> ranks;
  for (std::int32_t i = 0; i < count; ++i) ranks.push_back({3 + 2 * ((i * 5 + 2) % count)});
  return ranks;
}

/// Requires that the groups of each rank match the layout's dense mesh and its expert mesh.
void expect_groups_say_where_ranks_stand(const Layout& layout,
                                         const std::vector<GlobalRank>& ranks) {
  const Mesh dense = dense_mesh(layout, ranks);
  const Mesh experts = expert_mesh(layout, ranks);
  const Group members = members_of(layout, ranks);
  std::map<std::string_view, std::set<std::vector<GlobalRank>>> lists;
  for (std::int32_t place = 0; place < members.size(); ++place) {
    const GlobalRank self = members.member({place});
    const CheckpointGroups groups = groups_of(dense, experts, self);
    EXPECT_EQ(place_in(dense, groups, self), GroupRank{place});
    EXPECT_EQ(place_in(experts, groups, self), GroupRank{place});
    for (const auto& name : kGroupNames) {
      lists[name.argument].insert((groups.*name.group)->members());
    }
  }
  // Under each group name, the different groups together contain every rank exactly once.
  for (const auto& [name, parts] : lists) {
    std::vector<GlobalRank> all;
    for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
    std::sort(all.begin(), all.end());
    auto expected = members.members();
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(all, expected) << name;
  }
}

TEST(Groups, in_all_120_orders_they_say_where_each_of_16_ranks_stands) {
  const auto orders = all_orders();
  ASSERT_EQ(orders.size(), 120U);
  for (const auto& order : orders) {
    for (const char* sizes : {"tp2 cp2 dp2 pp2 ep2", "tp2 dp4 pp2 ep4 etp1 dp_replicate2"}) {
      const Layout layout = parse_layout(std::string(sizes) + " order " + order);
      SCOPED_TRACE(to_string(layout));
      expect_groups_say_where_ranks_stand(layout, {});
      expect_groups_say_where_ranks_stand(layout, odd_ranks(16));
    }
  }
}

TEST(Groups, each_order_deals_every_coordinate_to_one_rank) {
  std::set<std::vector<std::int32_t>> dealt;
  for (const auto& order : all_orders()) {
    const Mesh mesh = dense_mesh(parse_layout("tp2 cp2 dp2 pp2 ep2 order " + order));
    std::set<std::vector<std::int32_t>> seen;
    std::vector<std::int32_t> of_ranks;
    for (std::int32_t r = 0; r < 16; ++r) {
      std::vector<std::int32_t> coordinates;
      for (const auto axis : {"tp", "cp", "dp_shard", "pp"}) {
        coordinates.push_back(mesh.coordinate(GroupRank{r}, axis));
      }
      seen.insert(coordinates);
      of_ranks.insert(of_ranks.end(), coordinates.begin(), coordinates.end());
    }
    EXPECT_EQ(seen.size(), 16U) << order;
    dealt.insert(of_ranks);
  }
  EXPECT_EQ(dealt.size(), 24U);  // orders of tp, cp, dp and pp; ep's position changes nothing
}

/// Returns the orders of axes in which a pipeline stage has different ranks in the dense mesh than
/// in the expert mesh.
std::set<std::string> orders_with_other_stages(const std::string& sizes) {
  std::set<std::string> orders;
  for (const auto& order : all_orders()) {
    const Layout layout = parse_layout(sizes + " order " + order);
    const Mesh dense = dense_mesh(layout);
    const Mesh experts = expert_mesh(layout);
    for (std::int32_t r = 0; r < dense.size(); ++r) {
      if (dense.group_along({r}, "pp") != experts.group_along({r}, "pp")) orders.insert(order);
    }
  }
  return orders;
}

TEST(Groups, the_page_lists_the_orders_that_run_only_here) {
  std::ifstream page(REPRISE_SOURCE_DIR "/docs/scenarios.md");
  std::set<std::string> listed;
  const auto orders = all_orders();
  for (std::string word; page >> word;) {
    if (std::find(orders.begin(), orders.end(), word) != orders.end()) listed.insert(word);
  }
  EXPECT_EQ(listed, orders_with_other_stages("tp2 cp2 ep2 dp2 pp2"));
  EXPECT_EQ(listed.size(), 40U);
  for (const auto& order : orders_with_other_stages("tp2 ep4 dp4 pp2 etp1")) {
    EXPECT_FALSE(order.ends_with("pp")) << order;
  }
}

TEST(Groups, data_parallel_ranks_run_over_cp_first) {
  const Mesh dense = dense_mesh(parse_layout("tp2 cp2 dp2"), ranks_from({8, 1, 6, 3, 4, 5, 2, 7}));
  const Mesh experts = expert_mesh(parse_layout("tp2 cp2 dp2"));
  const CheckpointGroups groups = groups_of(dense, experts, GlobalRank{6});
  EXPECT_EQ(groups.tp, Group(ranks_from({6, 3})));
  EXPECT_EQ(groups.dp_cp, Group(ranks_from({8, 6, 4, 2})));
  EXPECT_EQ(groups.dp, Group(ranks_from({6, 2})));
  EXPECT_EQ(groups.pp, Group(ranks_from({6})));
}

TEST(Groups, of_another_size_or_without_the_rank_they_are_refused) {
  const Layout layout = parse_layout("tp2 dp2 pp2");
  const Mesh dense = dense_mesh(layout);
  const Mesh experts = expert_mesh(layout);
  for (const auto& name : kGroupNames) {
    const bool of_experts = name.of_experts;
    if (name.argument == "dp_cp_group" || name.argument == "ep_group") continue;
    CheckpointGroups groups = groups_of(dense, experts, GlobalRank{0});
    groups.*name.group = Group(ranks_from({0}));
    if ((groups_of(dense, experts, GlobalRank{0}).*name.group)->size() > 1) {
      EXPECT_EQ(code_of([&] { place_in(of_experts ? experts : dense, groups, GlobalRank{0}); }),
                Code::kLayoutMismatch)
          << name.argument;
    }
    groups.*name.group = Group(ranks_from({6, 7}));
    EXPECT_EQ(code_of([&] { place_in(of_experts ? experts : dense, groups, GlobalRank{0}); }),
              Code::kLayoutMismatch)
        << name.argument;
  }
}

// --- members -------------------------------------------------------------------------------------

TEST(Members, other_numbers_of_ranks_doubles_and_negative_ones_are_refused) {
  const Layout layout = parse_layout("tp2 dp2");
  EXPECT_EQ(members_of(layout), Group::world(4));
  EXPECT_EQ(members_of(layout, ranks_from({3, 1, 0, 9})), Group(ranks_from({3, 1, 0, 9})));
  for (const auto& wrong : {std::vector{0, 1, 2}, {0, 1, 2, 3, 4}, {0, 1, 2, 2}, {0, 1, 2, -3}}) {
    EXPECT_EQ(code_of([&] {
                members_of(layout, ranks_from({wrong.begin(), wrong.end()}));
              }),
              Code::kLayoutMismatch);
  }
}

/// Trains a job on some ranks of a larger world.
Trained trained_on(const JobConfig& config, std::int32_t world, int steps) {
  std::vector<std::unique_ptr<TrainingJob>> jobs(static_cast<std::size_t>(world));
  std::vector<StateDict> dicts(static_cast<std::size_t>(world));
  Trained trained;
  contracts::run_world(world, [&](Fabric& fabric) {
    if (!members_of(config.makeup.layout, config.makeup.ranks).rank_of(fabric.rank())) return;
    const auto r = static_cast<std::size_t>(fabric.rank().value);
    jobs[r] = std::make_unique<TrainingJob>(config, fabric);
    std::vector<StepRecord> records;
    train(*jobs[r], steps, records);
    dicts[r] = jobs[r]->state();
    if (jobs[r]->world().rank() == GroupRank{0}) trained.records = records;
  });
  std::vector<RankState> views;
  for (std::int32_t r = 0; r < world; ++r) {
    const auto i = static_cast<std::size_t>(r);
    if (jobs[i]) views.push_back({GlobalRank{r}, &dicts[i]});
  }
  trained.state = assemble(views, trained.findings);
  return trained;
}

TEST(Members, a_job_on_any_ranks_in_any_order_has_the_same_state) {
  for (const char* model : {"gpt-tiny", "moe-tiny"}) {
    const bool experts = model == std::string_view("moe-tiny");
    JobConfig config{
        .makeup = {.model = model, .layout = parse_layout(experts ? "tp2 dp2 ep2" : "tp2 pp2")}};
    config.training.seed = 7;
    const Trained plain = trained_on(config, 4, 3);
    for (const auto& ranks : {std::vector{0, 1, 2, 3}, {3, 1, 0, 2}, {4, 5, 6, 7}, {7, 1, 4, 2}}) {
      config.makeup.ranks = ranks_from({ranks.begin(), ranks.end()});
      SCOPED_TRACE(join(config.makeup.ranks, " "));
      const Trained here = trained_on(config, 8, 3);
      EXPECT_TRUE(here.findings.empty());
      EXPECT_EQ(difference(plain.state, here.state), "");
      EXPECT_EQ(here.records, plain.records);
      ASSERT_EQ(here.state.objects.size(), plain.state.objects.size());
      for (std::size_t o = 0; o < here.state.objects.size(); ++o) {
        EXPECT_EQ(here.state.objects[o].value, plain.state.objects[o].value);
      }
    }
  }
}

TEST(Members, a_rank_that_is_none_of_the_jobs_makes_no_job) {
  contracts::run_world(4, [](Fabric& fabric) {
    JobConfig config{.makeup = {.ranks = ranks_from({2})}};
    if (fabric.rank() == GlobalRank{2}) {
      EXPECT_EQ(TrainingJob(config, fabric).members(), Group(ranks_from({2})));
    } else {
      EXPECT_EQ(code_of([&] { TrainingJob(config, fabric); }), Code::kUsage);
    }
    config.makeup.ranks = ranks_from({4});
    EXPECT_EQ(code_of([&] { TrainingJob(config, fabric); }), Code::kLayoutMismatch);
  });
}

// --- all, some or no groups given ----------------------------------------------------------------

/// Returns the sets of groups that a test forbids: the empty set, the set of all groups, and a set
/// for each single group.
std::vector<GroupSet> sets_to_forbid() {
  std::vector<GroupSet> sets = {{}, kAllGroups};
  for (std::size_t g = 0; g < kGroupNames.size(); ++g) sets.push_back(GroupSet().set(g));
  return sets;
}

/// The expected result of resolve(), if the caller passes the groups `given` and forbids the use of
/// these global groups instead.
struct Resolved {
  std::optional<Code> code;
  std::string says;
  CheckpointGroups groups;
};

Resolved right_answer(const CheckpointGroups& given, const GroupSet& forbidden, bool experts,
                      const CheckpointGroups& own) {
  Resolved right{.code = {}, .says = {}, .groups = given};
  if (given.tp.has_value() != given.pp.has_value()) {
    right.code = Code::kUsage;
    right.says = given.tp ? "given tp_group and not pp_group" : "given pp_group and not tp_group";
    return right;
  }
  std::vector<std::string_view> refused;
  for (std::size_t g = 0; g < kGroupNames.size(); ++g) {
    const auto& name = kGroupNames[g];
    if (given.*name.group || (name.of_experts && !experts)) continue;
    right.groups.*name.group = own.*name.group;
    if (forbidden.test(g)) refused.push_back(name.argument);
  }
  if (refused.empty()) return right;
  right.code = passed_on::kGlobalFallback;
  right.says = "taking the global " + join(refused, ", ") + " is forbidden";
  return right;
}

TEST(GivenGroups, each_group_and_the_pair_falls_back_or_is_refused_by_name) {
  const Layout layout = parse_layout("tp2 dp2");
  const GlobalRank self{1};
  const CheckpointGroups own = groups_of(dense_mesh(layout), expert_mesh(layout), self);
  for (const GroupCaller caller : {GroupCaller::kSave, GroupCaller::kLoad}) {
    for (std::size_t choice = 0; choice < 256; ++choice) {
      for (const GroupSet& forbidden : sets_to_forbid()) {
        for (const bool experts : {false, true}) {
          CheckpointGroups given;
          given.rng_prefix = "prefix.";
          for (std::size_t g = 0; g < kGroupNames.size(); ++g) {
            if ((choice >> g & 1U) != 0) given.*kGroupNames[g].group = own.*kGroupNames[g].group;
          }
          const GroupRegistry registry(layout, self, {forbidden});
          const Resolved right = right_answer(given, forbidden, experts, own);
          const auto ask = [&] { return resolve({caller, given, registry, self, experts}); };
          SCOPED_TRACE(std::to_string(choice) + " forbidden " + forbidden.to_string());
          if (!right.code) {
            EXPECT_EQ(ask(), right.groups);
            continue;
          }
          const auto error = error_of(ask);
          ASSERT_TRUE(error.has_value());
          EXPECT_EQ(error->code(), *right.code);
          EXPECT_THAT(error->message(), HasSubstr(right.says));
          EXPECT_TRUE(error->message().starts_with(name_of(caller))) << error->message();
          EXPECT_EQ(error->place().rank, self);
        }
      }
    }
  }
}

TEST(GivenGroups, are_named_as_arguments_and_nothing_else_is) {
  const std::vector<std::string> names = {"pp_group", "expt_dp_group"};
  EXPECT_THAT(arguments_of(groups_named(names)), testing::ElementsAre("pp_group", "expt_dp_group"));
  const std::vector<std::string> wrong = {"pp"};
  EXPECT_EQ(code_of([&] { groups_named(wrong); }), Code::kUsage);
}

TEST(GivenGroups, the_registry_knows_no_rank_beyond_its_own) {
  const Layout layout = parse_layout("tp2");
  const GroupRegistry registry(layout, GlobalRank{5}, RegistryUse::kAllowed);
  EXPECT_EQ(code_of([&] { registry.groups("load"); }), Code::kLayoutMismatch);
}

GroupSet groups_in(const std::vector<std::string>& names) { return groups_named(names); }

/// Returns the error of each rank's save or load in a job with this config.
std::vector<std::optional<Error>> refusals(const JobConfig& config, bool load) {
  std::vector<std::optional<Error>> errors(
      static_cast<std::size_t>(config.makeup.layout.world_size()));
  contracts::run_world(config.makeup.layout.world_size(), [&](Fabric& fabric) {
    TrainingJob job(config, fabric);
    errors[static_cast<std::size_t>(fabric.rank().value)] = error_of([&] {
      if (load) {
        job.load_request();
      } else {
        job.state();
      }
    });
  });
  return errors;
}

TEST(GivenGroups, all_ranks_are_told_what_is_wrong_with_them) {
  struct Row {
    GroupSource groups;
    RegistryUse fallback;
    std::vector<std::int32_t> ranks;
    std::optional<Code> code;
  };
  for (const bool load : {false, true}) {
    for (const Row& row : std::vector<Row>{
             {GroupSource::kExplicit, RegistryUse::kForbidden, {}, std::nullopt},
             {GroupSource::kExplicit, RegistryUse::kForbidden, {2, 0, 3, 1}, std::nullopt},
             {GroupSource::kFallback, RegistryUse::kAllowed, {}, std::nullopt},
             {GroupSource::kFallback, RegistryUse::kForbidden, {}, passed_on::kGlobalFallback},
             {GroupSource::kFallback, RegistryUse::kAllowed, {2, 0, 3, 1}, Code::kLayoutMismatch},
             {GroupSource::kHalf, RegistryUse::kAllowed, {}, Code::kUsage},
             {GroupSource::kHalf, RegistryUse::kForbidden, {}, Code::kUsage},
             {{groups_in({"dp_cp_group"})}, RegistryUse::kAllowed, {}, std::nullopt},
             {{groups_in({"dp_cp_group"})}, {groups_in({"dp_group"})}, {}, std::nullopt},
             {{groups_in({"dp_cp_group"})},
              {groups_in({"dp_cp_group"})},
              {},
              passed_on::kGlobalFallback},
             {{groups_in({"dp_cp_group"})},
              RegistryUse::kAllowed,
              {2, 0, 3, 1},
              Code::kLayoutMismatch},
             {{groups_in({"tp_group", "pp_group"})}, RegistryUse::kAllowed, {}, std::nullopt},
             {{groups_in({"tp_group"})}, RegistryUse::kAllowed, {}, Code::kUsage}}) {
      JobConfig config{
          .makeup = {.layout = parse_layout("tp2 dp2"), .ranks = ranks_from(row.ranks)}};
      config.groups.source = row.groups;
      config.groups.fallback = row.fallback;
      for (const auto& error : refusals(config, load)) {
        EXPECT_EQ(error ? std::optional(error->code()) : std::nullopt, row.code);
        if (row.code && row.code != Code::kLayoutMismatch) {
          EXPECT_THAT(error->message(), HasSubstr(load ? "load" : "save"));
        }
      }
    }
  }
}

TEST(GivenGroups, the_prefix_precedes_keys_of_random_states_and_finds_them) {
  JobConfig config{.makeup = {.model = "moe-tiny", .layout = parse_layout("tp2 dp2 ep2")},
                   .training = {.seed = 7}};
  config.checkpoint.rng_prefix = "mimo.language.";
  const Trained saved = trained(config, 3, &TrainingJob::state);
  std::set<std::string> keys;
  for (const auto& object : saved.state.objects) {
    keys.insert(object.key.substr(0, object.key.find("rng_state") + 9));
  }
  EXPECT_EQ(keys,
            (std::set<std::string>{"mimo.language.rng_state", "mimo.language.expert_rng_state"}));
  config.training.seed = 99;
  const Trained again = run_jobs(
      config, {}, [&](TrainingJob& job, auto&) { load_from(job, saved.state); },
      &TrainingJob::state);
  ASSERT_EQ(again.state.objects.size(), saved.state.objects.size());
  for (std::size_t o = 0; o < again.state.objects.size(); ++o) {
    EXPECT_EQ(again.state.objects[o].value, saved.state.objects[o].value);
  }
}

TEST(ContentMetadata, the_group_is_stripped_on_save_and_put_back_on_load) {
  const ContentMetadata metadata{Sharding::kDpReshardable, Group(ranks_from({4, 2}))};
  const Value written = stripped(metadata);
  EXPECT_EQ(written, Value(Dict{{"distrib_optim_sharding_type", "dp_reshardable"}}));
  const Value common = Dict{{"content_metadata", written}};
  const Group here(ranks_from({1, 0, 3}));
  EXPECT_EQ(put_back(common, {Sharding::kFullyReshardable, here}),
            (ContentMetadata{Sharding::kDpReshardable, here}));
  EXPECT_EQ(put_back(Dict{}, {Sharding::kFullyReshardable, here}),
            (ContentMetadata{Sharding::kFullyReshardable, here}));
}

TEST(ContentMetadata, a_saved_common_state_names_the_sharding_alone) {
  JobConfig config{.makeup = {.layout = parse_layout("dp2")}, .training = {.seed = 7}};
  config.checkpoint.optimizer_sharding = Sharding::kFsdpDtensor;
  const Trained saved = trained(config, 1, &TrainingJob::state);
  const Value* entry = saved.state.common.find("content_metadata");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(*entry, Value(Dict{{"distrib_optim_sharding_type", "fsdp_dtensor"}}));
}

}  // namespace
}  // namespace reprise::sim
