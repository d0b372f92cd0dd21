// Tests that if ranks disagree on one of their groups, all ranks refuse the call and nothing is
// written.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/load/load.hpp"
#include "core/save/save.hpp"
#include "sim/job/job.hpp"
#include "sim/world/world.hpp"
#include "tests/contracts/error_of.hpp"

namespace reprise::sim::group_agreement_test {
namespace {

using testing::HasSubstr;

/// Eight of nine ranks in an arbitrary order; rank 0 is not one of them.
const std::vector<GlobalRank> kRanks = {{5}, {2}, {8}, {1}, {3}, {7}, {6}, {4}};
constexpr std::int32_t kWorld = 9;

struct Disagreement {
  std::string name;
  Group (*made)(const Group& right, GlobalRank self);
};

const std::vector<Disagreement>& disagreements() {
  static const std::vector<Disagreement> all = {
      {"order permuted",
       [](const Group& right, GlobalRank) {
         auto members = right.members();
         std::reverse(members.begin(), members.end());
         return Group(std::move(members));
       }},
      {"a member missing",
       [](const Group& right, GlobalRank) {
         auto members = right.members();
         members.pop_back();
         return Group(std::move(members));
       }},
      {"another member",
       [](const Group& right, GlobalRank self) {
         auto members = right.members();
         const auto other = std::find_if(members.begin(), members.end(),
                                         [self](GlobalRank rank) { return rank != self; });
         *other = *std::find_if(kRanks.begin(), kRanks.end(),
                                [&right](GlobalRank rank) { return !right.rank_of(rank); });
         return Group(std::move(members));
       }},
      {"an idle rank more",
       [](const Group& right, GlobalRank) {
         auto members = right.members();
         members.push_back({0});
         return Group(std::move(members));
       }},
      {"not the rank itself",
       [](const Group& right, GlobalRank self) {
         auto members = right.members();
         std::erase(members, self);
         return Group(std::move(members));
       }},
  };
  return all;
}

JobConfig config() {
  JobConfig config{.makeup = {.model = "moe-tiny", .layout = parse_layout("tp2 dp2 pp2 ep2 etp1")}};
  config.makeup.ranks = kRanks;
  return config;
}

/// Runs `work` on the ranks of the job. The other ranks do nothing.
RunResult run(SimStore& store, const std::function<void(TrainingJob&, Ports&)>& work) {
  World world({.world_size = kWorld}, store);
  return world.run([&](Ports& ports, GlobalRank rank) {
    if (std::find(kRanks.begin(), kRanks.end(), rank) == kRanks.end()) return;
    TrainingJob job(config(), ports.fabric);
    work(job, ports);
  });
}

void save(TrainingJob& job, Ports& ports, const CheckpointGroups& groups) {
  const StateDict state = job.state(JobGroups{groups});
  SaveOptions options;
  options.directory = "run";
  options.step = job.iteration().value;
  Save::begin(ports, job.world_group(), state, options).finish();
}

using Refusals = std::map<GlobalRank, std::optional<Error>>;

/// Requires that every member refused the call with a message that contains the group's name and
/// two views of the group.
void expect_refused(const Refusals& refusals, std::string_view group) {
  EXPECT_EQ(refusals.size(), kRanks.size());
  for (const auto& [rank, error] : refusals) {
    ASSERT_TRUE(error.has_value()) << "rank " << rank;
    EXPECT_EQ(error->code(), Code::kLayoutMismatch) << error->what();
    EXPECT_THAT(error->message(), HasSubstr(group));
    EXPECT_THAT(error->message(), HasSubstr("{"));
  }
}

/// Returns the group as the rank `self` sees it under this disagreement; nothing if that is the
/// right group. The only possible disagreement on a group of one rank is an additional rank.
std::optional<Group> taken_by_odd_one(const Disagreement& disagreement, const Group& right,
                                      GlobalRank self) {
  if (right.size() == 1 && disagreement.name != "an idle rank more") return std::nullopt;
  const Group wrong = disagreement.made(right, self);
  if (wrong == right) return std::nullopt;
  return wrong;
}

TEST(GroupAgreement, every_disagreement_of_any_rank_is_refused_before_any_write) {
  int tried = 0;
  for (const auto odd : kRanks) {
    SimStore store;
    std::map<std::string, Refusals> refused;
    const RunResult result = run(store, [&](TrainingJob& job, Ports& ports) {
      const CheckpointGroups right = job.own_groups().front();
      for (const auto& disagreement : disagreements()) {
        for (const auto& name : kGroupNames) {
          const Mesh dense = dense_mesh(config().makeup.layout, kRanks);
          const Mesh experts = expert_mesh(config().makeup.layout, kRanks);
          const auto odd_ones = groups_of(dense, experts, odd).*name.group;
          const auto wrong = taken_by_odd_one(disagreement, *odd_ones, odd);
          if (!wrong) continue;
          CheckpointGroups groups = right;
          if (job.rank() == odd) groups.*name.group = wrong;
          refused[std::string(name.argument) + ": " + disagreement.name][job.rank()] =
              contracts::error_of([&] { save(job, ports, groups); });
        }
      }
    });
    for (const auto& outcome : result.ranks) EXPECT_EQ(outcome.end, RankEnd::kReturned);
    for (const auto& [what, refusals] : refused) {
      SCOPED_TRACE("rank " + std::to_string(odd.value) + ", " + what);
      expect_refused(refusals, what.substr(0, what.find(':')));
      ++tried;
    }
    EXPECT_TRUE(store.list("").empty());
  }
  EXPECT_GT(tried, 200);
}

TEST(GroupAgreement, a_load_with_other_groups_is_refused_and_changes_nothing) {
  SimStore store;
  const RunResult saved = run(store, [](TrainingJob& job, Ports& ports) {
    job.step();
    save(job, ports, job.own_groups().front());
  });
  for (const auto rank : kRanks) {
    EXPECT_EQ(saved.ranks[static_cast<std::size_t>(rank.value)].end, RankEnd::kReturned);
  }
  for (const auto odd : kRanks) {
    Refusals refusals;
    run(store, [&](TrainingJob& job, Ports& ports) {
      const auto common = read_common(ports.store, job.world(), "run");
      CheckpointGroups groups = job.own_groups().front();
      if (job.rank() == odd) groups.tp = disagreements().front().made(*groups.tp, odd);
      const Value before = job.live_state().objects.front().value;
      refusals[job.rank()] =
          contracts::error_of([&] { job.load_request({.common = &*common}, {groups}); });
      EXPECT_EQ(job.iteration(), Step{0});
      EXPECT_EQ(job.live_state().objects.front().value, before);
    });
    expect_refused(refusals, "tp_group");
  }
}

}  // namespace
}  // namespace reprise::sim::group_agreement_test
