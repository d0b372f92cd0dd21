#pragma once
// Waiting for peers on a real lane without waiting for ever: what every fabric's calls do while
// their operations are under way. The simulated lane has its scheduler in place of this.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "core/ports/clock.hpp"
#include "core/ports/peer_watch.hpp"
#include "reprise/mesh.hpp"

namespace reprise {

/// Half an hour: how long a call waits where nobody says otherwise.
inline constexpr std::uint64_t kDefaultDeadlineNs = 1'800'000'000'000;

/// Refuses a deadline of 0 with USAGE: there is no call without one, and none that gives up before
/// it began. A fabric asks this of its limits when it is made.
void require_deadline(std::uint64_t deadline_ns);

/// One call's patience: it may consist of several operations, all of which share its deadline.
class Patience {
 public:
  struct Limits {
    std::uint64_t deadline_ns = 0;  ///< from the call's beginning on; never 0
    PeerWatch* watch = nullptr;     ///< without one the deadline alone tells
  };

  /// All is borrowed for the call, which begins now. `describe` says what is waited for.
  Patience(Clock& clock, Limits limits, const Group& group, GlobalRank self,
           std::function<std::string()> describe);

  /// Asks `done` until it is true, at first without a pause, then with longer ones. DEADLINE when
  /// the time is over, PEER_FAILED when the watch says that a member has ended; what `done` throws
  /// passes. What was waited for is then still under way.
  void until(const std::function<bool()>& done);

  GlobalRank self() const { return self_; }
  std::string describe() const { return describe_(); }

 private:
  void look();
  std::optional<GlobalRank> ended_member() const;

  Clock& clock_;
  Limits limits_;
  const Group& group_;
  GlobalRank self_;
  std::function<std::string()> describe_;
  std::uint64_t give_up_at_ns_;
  std::uint64_t next_look_ns_;
  std::optional<std::pair<GlobalRank, std::uint64_t>> ended_;  ///< who, and when it was seen
};

}  // namespace reprise
