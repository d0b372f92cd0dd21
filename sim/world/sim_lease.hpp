#pragma once
// Who writes where, of one store.
//
//   with renames      a lock: it goes with its holder, however that one ends
//   without           a lease: one small object a path, { fence, end of the term }, which a
//                     conditional put changes
//
// A fence is larger than all fences before it. Who takes a lease puts the next one into it, and no
// name changes any more for a holder of an older one, who may live on and not know. A holder gives
// its lease back; one that dies leaves it to its term.

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
  /// LOCKED if another one holds it, and its term is not over. Its token is the fence in
  /// hexadecimal digits; one that `is_used` is left out.
  std::unique_ptr<StoreLock> take(const Place& place, const StoreCapabilities& capabilities,
                                  const std::function<bool(const std::string&)>& is_used);
  /// LOCKED if another one has taken what `lock` holds.
  void require_held(const StoreLock& lock, const std::string& display) const;
  void pass_term() { now_ns_ += kTermNs; }

 private:
  class Holder;
  struct Lease {
    std::string fence;          ///< of the last one that took it
    std::uint64_t ends_ns = 0;  ///< 0: it was given back
    bool outlives = false;      ///< its holder, who may die
  };

  std::map<std::string, std::shared_ptr<Lease>> leases_;
  std::uint64_t taken_ = 0;
  std::uint64_t now_ns_ = 0;
};

}  // namespace reprise::sim
