#pragma once
// Holds what the ranks of a life did, for traces and diagrams: in virtual time, or, if the ranks
// are processes, in real time.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/types.hpp"

namespace reprise::sim {

enum class SliceKind : std::uint8_t {
  kPhase,       ///< a phase of the engine
  kStep,        ///< a step of a protocol, within a phase
  kCollective,  ///< a collective call, from its begin until its result or its error
  kStore,       ///< a call to the store
  kCopy,  ///< copies of a device that pass its bus; only if the world's rates let them take time
};

/// Identifies a collective call: the same for all ranks that take part in it.
struct Meeting {
  std::uint64_t channel = 0;   ///< identifies the communicator in this life
  std::uint64_t sequence = 0;  ///< number of the call on that communicator

  friend auto operator<=>(const Meeting&, const Meeting&) = default;
};

/// Something that a rank did for a while.
struct Slice {
  SliceKind kind = SliceKind::kPhase;
  GlobalRank rank = {};
  /// The fiber or thread that did it: that of the rank itself, which has the rank's number, or that
  /// of one of its background tasks.
  std::size_t fiber = 0;
  std::string name = {};  ///< of the phase, the step or the call
  std::string detail =
      {};  ///< of a step its phase, of a collective its group, of copies their device, else a path
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint64_t bytes = 0;
  std::uint64_t items = 0;
  std::optional<Step> save = {};  ///< step of the save to which a phase belongs
  /// Empty if the rank did not take part in the call. In real time nobody can tell, so each call
  /// has one.
  std::optional<Meeting> meeting = {};
  /// True if it did not end well: the phase or the call failed, or the rank died or hung in it.
  bool cut = false;
};

enum class InstantKind : std::uint8_t {
  kFault,   ///< a planned fault struck
  kEnd,     ///< the rank's life ended, and not by returning
  kBroken,  ///< the rank took a step that a protocol does not allow
  kLost,    ///< what the rank recorded from here on can't be read
};

/// Phase of the event with which a trace tells that the rank broke a protocol; the detail says how.
inline constexpr std::string_view kBrokenProtocol = "protocol";

/// Something that happened to a rank.
struct Instant {
  InstantKind kind = InstantKind::kFault;
  GlobalRank rank = {};
  std::uint64_t at_ns = 0;
  std::string name = {};    ///< kind of the fault; how the rank ended: "killed", "failed", "hung"
  std::string detail = {};  ///< where the fault struck; why the rank ended; how it broke a protocol
};

struct Recording {
  std::vector<Slice> slices;      ///< by begin; of those that begin together, the longest first
  std::vector<Instant> instants;  ///< in the order in which they happened
  std::uint64_t duration_ns = 0;  ///< time that the life took
  std::uint64_t left_out = 0;     ///< number of older slices that were dropped
  bool real_time = false;         ///< true if calls to the store take time and may overlap
};

}  // namespace reprise::sim
