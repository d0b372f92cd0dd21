#pragma once
// Waits for other ranks on a real lane, up to a deadline. Every fabric call waits with this class
// while its operations are pending. The simulated lane uses its scheduler instead.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "core/ports/clock.hpp"
#include "core/ports/peer_watch.hpp"
#include "reprise/mesh.hpp"

namespace reprise {

/// Default deadline of a call: half an hour.
inline constexpr std::uint64_t kDefaultDeadlineNs = 1'800'000'000'000;

/// Throws USAGE for a deadline of 0, because a call with that deadline would fail before it starts.
/// Fabrics check their limits with this function when they are created.
void require_deadline(std::uint64_t deadline_ns);
/// Returns the nanoseconds of a deadline that a user chose. Throws USAGE unless it is longer than
/// 0.
std::uint64_t required_deadline(std::chrono::nanoseconds deadline);

/// The deadline of one call, shared by all operations of the call.
class CallDeadline {
 public:
  struct Limits {
    std::uint64_t deadline_ns = 0;  ///< counted from the start of the call; never 0
    PeerWatch* watch = nullptr;     ///< if null, only the deadline ends the wait
  };

  /// The call starts when this object is constructed. `clock`, `group` and `limits.watch` must
  /// outlive the object. `describe` returns text that names what the call waits for.
  CallDeadline(Clock& clock, Limits limits, const Group& group, GlobalRank self,
               std::function<std::string()> describe);
  /// The same for a call that knows no ranks: only the deadline ends the wait.
  CallDeadline(Clock& clock, std::uint64_t deadline_ns, std::function<std::string()> describe);

  /// Calls `done` repeatedly until it returns true, at first without pauses, later with pauses.
  /// Throws DEADLINE when the deadline is reached. Throws PEER_FAILED when the watch reports that a
  /// member has ended, and INTERRUPTED when it says that this rank is to stop. Passes on any
  /// exception of `done`. After an exception, the awaited operation is still pending.
  void until(const std::function<bool()>& done);

  GlobalRank self() const { return self_.value(); }
  std::string describe() const { return describe_(); }

 private:
  void look();
  std::optional<GlobalRank> ended_member() const;

  Clock& clock_;
  Limits limits_;
  const Group* group_;  ///< null if the call knows no ranks
  std::optional<GlobalRank> self_;
  std::function<std::string()> describe_;
  std::uint64_t ends_at_ns_;
  std::uint64_t next_look_ns_;
  std::optional<std::uint64_t> told_ns_;  ///< when this rank was told to stop
  /// A rank that has ended, and when that was noticed.
  std::optional<std::pair<GlobalRank, std::uint64_t>> ended_;
};

}  // namespace reprise
