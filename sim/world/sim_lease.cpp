#include "sim/world/sim_lease.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/base/hash.hpp"
#include "reprise/error.hpp"

namespace reprise::sim {

class SimLeases::Holder final : public StoreLock {
 public:
  Holder(std::shared_ptr<Lease> lease, std::string warning)
      : StoreLock(lease->fence, std::move(warning)), lease_(std::move(lease)) {}
  ~Holder() override {
    const bool dies = std::uncaught_exceptions() > 0;
    if (lease_->fence != token() || (dies && lease_->outlives)) return;
    lease_->ends_ns = 0;
  }

 private:
  std::shared_ptr<Lease> lease_;
};

std::unique_ptr<StoreLock> SimLeases::take(const Place& place,
                                           const StoreCapabilities& capabilities,
                                           const std::function<bool(const std::string&)>& is_used) {
  auto& lease = leases_[place.path];
  if (!lease) lease = std::make_shared<Lease>();
  if (capabilities.locks && lease->ends_ns > now_ns_) {
    throw Error(
        Code::kLocked,
        "another writer is at work there; wait until it has ended, or end it, and try again",
        {.file = place.display});
  }
  std::string fence;
  do {
    fence = hex(++taken_);
  } while (is_used(fence));
  // Without locks, a path may have several writers at once.
  if (!capabilities.locks) lease = std::make_shared<Lease>();
  const bool is_lease = !capabilities.renames;
  *lease = {fence, is_lease ? now_ns_ + kTermNs : UINT64_MAX, is_lease};
  return std::make_unique<Holder>(lease, capabilities.locks ? "" : "this store has no locks");
}

bool SimLeases::is_held(const std::string& path) const {
  const auto lease = leases_.find(path);
  return lease != leases_.end() && lease->second->ends_ns > now_ns_;
}

void SimLeases::require_held(const StoreLock& lock, const std::string& display) const {
  const auto holds = [&lock](const auto& entry) { return entry.second->fence == lock.token(); };
  if (!lock.warning().empty() || std::any_of(leases_.begin(), leases_.end(), holds)) return;
  throw Error(Code::kLocked,
              "another writer has taken the lease, whose term was over; what this one wrote is not "
              "made visible",
              {.file = display});
}

}  // namespace reprise::sim
