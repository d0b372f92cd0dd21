#include "driver/lanes/lane.hpp"

namespace reprise::driver {

sim::Policies policies_of(const LaneOptions& options) {
  sim::Policies policies;
  if (options.asked_seams) sim::watch_seams(policies);
  if (options.decide) options.decide(policies);
  if (!options.mutant.empty()) sim::mutant_named(options.mutant).apply(policies);
  return policies;
}

void keep_members(const LifePlan& plan, LifeRecord& record) {
  record.world = plan.world_size();
  if (plan.ranks.empty()) return;
  std::vector<RankRecord> members;
  for (const auto rank : plan.ranks) {
    members.push_back(std::move(record.ranks[static_cast<std::size_t>(rank)]));
  }
  for (auto& rank : record.ranks) {
    if (plan.has_member(rank.result.rank)) continue;
    if (rank.ending != Ending::kReturned) members.push_back(std::move(rank));
  }
  record.ranks = std::move(members);
}

}  // namespace reprise::driver
