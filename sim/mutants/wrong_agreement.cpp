#include <span>
#include <vector>

#include "core/base/codes.hpp"
#include "properties/finding_code.hpp"
#include "sim/mutants/asked.hpp"
#include "sim/mutants/registration.hpp"

namespace reprise::sim {
namespace {

constexpr std::size_t kGathered = 2;  ///< ranks whose offers count

template <class Each, class Take>
Each of_first_ranks(Each each, Take take) {
  for (std::size_t r = kGathered; r < each.size(); ++r) take(each[r], each.front());
  return each;
}

std::vector<LocalPlan> one_common(std::vector<LocalPlan> offers) {
  return of_first_ranks(std::move(offers), [](LocalPlan& plan, const LocalPlan& first) {
    plan.common_digest = first.common_digest;
  });
}

const Registration kAgreedByTwoCommon({
    "agreed-by-two/common",
    "The save checks that the common state is the same on the first two ranks only. A rank "
    "whose common state differs goes unnoticed.",
    "PlanSeams::gathered",
    "3 ranks, and a common state that differs on the last one",
    {judged::kVerdictDisagreement},
    [](Policies& policies) { policies.save.plan.gathered = asked<one_common>; },
});

std::vector<CacheClaim> one_memory(std::vector<CacheClaim> claims) {
  return of_first_ranks(std::move(claims), [](CacheClaim& claim, const CacheClaim& first) {
    claim.remembered = first.remembered;
  });
}

const Registration kAgreedByTwoKeptCommon({
    "agreed-by-two/kept-common",
    "A cached plan is reused as soon as the first two ranks have the same common state, without "
    "asking the others.",
    "CacheSeams::claims",
    "cached plans; 3 ranks, and a common state that differs on the last one",
    {judged::kVerdictDisagreement},
    [](Policies& policies) { policies.save.cache.claims = asked<one_memory>; },
});

std::vector<CacheClaim> no_structure(std::vector<CacheClaim> claims) {
  return of_first_ranks(std::move(claims),
                        [](CacheClaim& claim, const CacheClaim&) { claim.structure = 0; });
}

void drop_unplanned(std::span<const std::string>) {}

const Registration kAgreedByTwoKeptStructure({
    "agreed-by-two/kept-structure",
    "A cached plan is reused as soon as the first two ranks save the same keys as before. Keys "
    "that are not in the plan are dropped.",
    "CacheSeams::claims, unplanned",
    "cached plans; 3 ranks, and a key that changes on the last one",
    {Code::kStalePlan, judged::kVerdictDisagreement},
    [](Policies& policies) {
      policies.save.cache.claims = asked<no_structure>;
      policies.save.cache.unplanned = asked<drop_unplanned>;
    },
});

/// Takes what later ranks say of their groups for what it should be.
void groups_of_first_ranks(std::span<const GroupIdeas> ideas) {
  std::vector<GroupIdeas> taken(ideas.begin(), ideas.end());
  for (std::size_t r = kGathered; r < taken.size(); ++r) {
    for (GroupClaim& claim : taken[r].claims) claim.group = claim.laid_out;
  }
  judge_groups(taken);
}

const Registration kAgreedByTwoGroups({
    "agreed-by-two/groups",
    "The check that ranks agree on their groups covers the first two ranks only.",
    "JobPolicy::groups",
    "3 ranks, the last of which has a wrong group",
    {judged::kVerdictDisagreement, Code::kNoWriter, Code::kMultiWriter},
    [](Policies& policies) { policies.job.groups = asked<groups_of_first_ranks>; },
});

}  // namespace
}  // namespace reprise::sim
