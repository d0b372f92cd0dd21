#include "core/save/last_plan.hpp"

#include <algorithm>
#include <utility>

#include "core/base/bytes.hpp"

namespace reprise {
namespace {

bool is_small(const std::vector<Bytes>& offers, const GlobalPlan& plan) {
  std::uint64_t bytes = 0;
  for (const Bytes& offer : offers) bytes += offer.size();
  std::size_t boxes = 0;
  for (const PlannedTensor& tensor : plan.tensors) boxes += tensor.owners.size();
  return bytes <= LastPlan::kOffersMax && boxes <= LastPlan::kBoxesMax;
}

}  // namespace

LastPlan::Plan LastPlan::of(const std::vector<Bytes>& offers, const Group& savers,
                            const std::function<GlobalPlan()>& make) {
  if (is_of(offers, savers)) return plan_;
  auto plan = std::make_shared<const GlobalPlan>(make());
  const bool keeps = is_small(offers, *plan);
  offers_ = keeps ? offers : std::vector<Bytes>();
  savers_ = keeps ? savers.members() : std::vector<GlobalRank>();
  plan_ = keeps ? plan : nullptr;
  return plan;
}

bool LastPlan::is_of(const std::vector<Bytes>& offers, const Group& savers) const {
  const auto same = [](const Bytes& a, const Bytes& b) {
    return as_text(a) == as_text(b);  // which compares many bytes at a time
  };
  return plan_ && savers_ == savers.members() && std::ranges::equal(offers_, offers, same);
}

}  // namespace reprise
