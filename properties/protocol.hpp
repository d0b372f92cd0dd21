#pragma once
// States in which a rank can be during a save, a load, or between the iterations of a job with a
// rerun machine, and the moves that lead from one state to the next. The tables are written down
// here once more, apart from the engine, so that an engine whose steps change their order is
// contradicted by them.

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "reprise/ports.hpp"

namespace reprise {

enum class Protocol : std::uint8_t { kSave, kLoad, kRerun };

/// One allowed move. Events of the trace have the form "+commit/swap_in" for a begin and
/// "-commit/swap_in" for an end. The first state of each table is "new".
struct ProtocolMove {
  std::string from;
  std::string event;
  std::string to;
};

/// Returns all allowed moves, in the order in which a run without faults makes them.
std::span<const ProtocolMove> moves_of(Protocol protocol);

/// Follows one rank through one save, through one load, or through the iterations of its job.
class ProtocolWalk {
 public:
  explicit ProtocolWalk(Protocol protocol) : protocol_(protocol) {}

  /// Makes the move for this event. If the table has no such move, returns a message that names the
  /// state, the event and the allowed events. After that, ignores all further events.
  std::optional<std::string> take(std::string_view event);
  /// The same for an event of the trace. Ignores events of phases that are not in the table.
  std::optional<std::string> take(const TraceEvent& event);

  const std::string& state() const { return state_; }
  /// True once an event was not allowed.
  bool is_broken() const { return broken_; }
  /// True if a save or load that has returned without an error may be in this state.
  bool is_complete() const;

 private:
  Protocol protocol_;
  std::string state_ = "new";
  bool broken_ = false;
};

}  // namespace reprise
