#pragma once
// Tracks the writers of each path of a store.
//
//   with renames      a lock: it goes with its holder, however that one ends
//   without           a lease: one small object a path, { fence, end of the term }, which a
//                     conditional put changes
//
// A fence is larger than all earlier fences. A writer that takes a lease stores the next fence in
// it, and the store then refuses name changes by holders of older ones, which may still run without
// knowing it. A holder returns its lease; if it dies, the lease lasts until the end of its term.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "reprise/store.hpp"

namespace reprise::sim {

class SimLeases {
 public:
  static constexpr std::uint64_t kTermNs = 30'000'000'000;

  struct Place {
    std::string path;
    std::string display;  ///< for messages
  };
  /// LOCKED if another writer holds the path within its term. The token of the lock is the fence in
  /// hexadecimal digits; skips fences for which `is_used` is true.
  std::unique_ptr<StoreLock> take(const Place& place, const StoreCapabilities& capabilities,
                                  const std::function<bool(const std::string&)>& is_used);
  /// Throws LOCKED if another writer has taken the path that `lock` holds.
  void require_held(const StoreLock& lock, const std::string& display) const;
  void pass_term() { now_ns_ += kTermNs; }

 private:
  class Holder;
  struct Lease {
    std::string fence;          ///< fence of its last taker
    std::uint64_t ends_ns = 0;  ///< 0: it was returned
    bool outlives = false;      ///< true if it outlasts a holder that dies
  };

  std::map<std::string, std::shared_ptr<Lease>> leases_;
  std::uint64_t taken_ = 0;
  std::uint64_t now_ns_ = 0;
};

}  // namespace reprise::sim
