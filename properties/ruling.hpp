#pragma once
// What judges say: a name from the field's defects, and a sentence with the place.

#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.hpp"

namespace reprise {

enum class Defect : std::uint8_t {
  kBitMismatch,           ///< an element differs and nothing known explains how
  kWrongOwner,            ///< an element is another tensor's, or another rank's part
  kShiftedBytes,          ///< an element is another index's of the same tensor
  kZeroFill,              ///< zeros stand where there was content
  kNotFilled,             ///< the poison that stood there before the load
  kReplicaMismatch,       ///< copies that should be equal differ
  kCoverageGap,           ///< no rank holds some element
  kKeysetAsymmetry,       ///< saved, requested and live keys are not the same
  kLostObject,            ///< a value or object is not back, or not the same
  kCommonStateDiverges,   ///< what is stored once differs between ranks
  kShapeDrift,            ///< global shapes differ
  kDtypeDrift,            ///< element types differ
  kTrajectoryDivergence,  ///< two runs differ at some later step
  kOracleVacuous,         ///< nothing was compared
  kFalseReplica,          ///< copies declared equal hold different bytes at a save
  kNoWriter,              ///< no rank has the main copy
  kMultiWriter,           ///< several ranks have the main copy
  kStaleDerived,          ///< a derived copy is not what its source gives
  kPermutedShards,        ///< an element is another shard's of the same tensor, at the same place
  kPermutedComponents,    ///< an element is another component's of the same fused tensor
  kStaleBytes,            ///< an element is its own place's at another step
  kTornSnapshot,          ///< an element was staged before it was there, or after the job went on
  kRngStreamCollapse,     ///< a random stream equals one that it should differ from
  kRngDrift,              ///< a random stream moved otherwise than by the steps trained
  kLayoutMismatch,        ///< the layout that a checkpoint names is not the one that saved it
  kStalePlan,             ///< a save went by a plan that was not made of the live state
  kStaleDistribution,     ///< owners were chosen for other ranks or another state
  kCachePoisoned,         ///< what a failed save left in a cache reached a later one
  kTrackerDangling,       ///< the tracker names what is not there, or not whole
  kLastGoodDeleted,       ///< no whole checkpoint is left of those that were committed
  kCommitMissing,         ///< a save ended well, and no tracker names it
  kMixedGeneration,       ///< ranks went on from different checkpoints
  kDataStreamSkip,        ///< samples were lost or seen twice
  kIllegalState,          ///< a state that can't be resumed was persisted
  kRestartLoop,           ///< restarts go round without an end and nobody is told
  kVerdictDisagreement,   ///< ranks disagree on what came of an operation
  kMemPeak,               ///< more memory was held than was declared
  kRetentionExceeded,     ///< more checkpoints are left than are to be kept
  kReadTwice,             ///< bytes left storage again that one read was to bring to all ranks
};

/// Stable upper-case name: "WRONG_OWNER".
std::string_view name_of(Defect defect);

struct Ruling {
  Defect defect = Defect::kBitMismatch;
  std::string key;
  std::string message;
  std::optional<GlobalRank> rank;

  /// "WRONG_OWNER: <message> [rank 0, key ...]"
  friend std::ostream& operator<<(std::ostream& out, const Ruling& ruling);
};

using Rulings = std::vector<Ruling>;

}  // namespace reprise
