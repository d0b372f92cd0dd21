#pragma once
// Tracks the writers of each path of a store.
//
//   with renames      a lock, which ends when its holder returns it or dies
//   without renames   a lease: one small object for each path, { fence, end of the term }, which
//                     is changed by a conditional put
//
// A fence is a number larger than all earlier fences. When a writer takes a lease, it stores the
// next fence in the lease. From then on the store refuses name changes by holders of earlier
// fences, since such a holder may still be running without knowing that it has lost the lease. A
// lease ends when its holder returns it. If the holder dies, the lease lasts until the end of its
// term.

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
    std::string display;  ///< the path shown in messages
  };
  /// Throws LOCKED if another writer holds the path and its lease has not ended. The new lock's
  /// token is its fence in hexadecimal digits. Skips fences for which `is_used` returns true.
  std::unique_ptr<StoreLock> take(const Place& place, const StoreCapabilities& capabilities,
                                  const std::function<bool(const std::string&)>& is_used);
  /// True if a writer holds the path and its lease has not ended.
  bool is_held(const std::string& path) const;
  /// Throws LOCKED if another writer has taken over the path since `lock` was taken.
  void require_held(const StoreLock& lock, const std::string& display) const;
  void pass_term() { now_ns_ += kTermNs; }

 private:
  class Holder;
  struct Lease {
    std::string fence;          ///< fence of the last writer that took the lease
    std::uint64_t ends_ns = 0;  ///< 0 once the holder has returned it
    bool outlives = false;      ///< true if the lease remains when its holder dies
  };

  std::map<std::string, std::shared_ptr<Lease>> leases_;
  std::uint64_t taken_ = 0;
  std::uint64_t now_ns_ = 0;
};

}  // namespace reprise::sim
