#pragma once
// Limits how long a call waits for a GPU. Work on a GPU may never end: a kernel of the job that
// communicates may wait for a rank that has died.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/ports/call_deadline.hpp"

namespace reprise {

struct CudaPatience {
  /// The ranks of the job. A wait ends early if one of them has ended.
  struct Peers {
    PeerWatch* watch;  ///< must outlive the device
    Group group;
    GlobalRank self;
  };

  std::uint64_t deadline_ns = kDefaultDeadlineNs;  ///< of one wait; never 0
  std::optional<Peers> peers = {};                 ///< if empty, only the deadline ends a wait
  Clock* clock = nullptr;                          ///< if null, the machine's monotonic clock

  /// Calls `done` until it returns true. Throws as CallDeadline::until does. `what` says what the
  /// call waits for.
  void until(const std::function<bool()>& done, const std::string& what) const;
};

}  // namespace reprise
