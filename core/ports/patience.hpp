#pragma once
// Waits for peers on a real lane, but not forever: every fabric call does this while its operations
// are pending. The simulated lane uses its scheduler instead.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "core/ports/clock.hpp"
#include "core/ports/peer_watch.hpp"
#include "reprise/mesh.hpp"

namespace reprise {

/// Default limit for the duration of a call: half an hour.
inline constexpr std::uint64_t kDefaultDeadlineNs = 1'800'000'000'000;

/// Throws USAGE for a deadline of 0: every call has a deadline, and none gives up before it starts.
/// A fabric checks its limits with this when it is created.
void require_deadline(std::uint64_t deadline_ns);

/// The deadline of one call, shared by all operations it consists of.
class Patience {
 public:
  struct Limits {
    std::uint64_t deadline_ns = 0;  ///< from the start of the call; never 0
    PeerWatch* watch = nullptr;     ///< null: only the deadline ends the wait
  };

  /// Borrows everything for the call, which begins now. `describe` names what is awaited.
  Patience(Clock& clock, Limits limits, const Group& group, GlobalRank self,
           std::function<std::string()> describe);

  /// Calls `done` until it returns true, at first without pauses, then with growing ones. Throws
  /// DEADLINE when the time is over, PEER_FAILED when the watch reports that a member has ended,
  /// and anything `done` throws. The awaited operation is then still pending.
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
  std::optional<std::pair<GlobalRank, std::uint64_t>> ended_;  ///< rank, and when its end was seen
};

}  // namespace reprise
