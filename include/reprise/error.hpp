#pragma once
// The one list of codes, and the exception type that carries one with the place where it happened.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "reprise/types.hpp"

namespace reprise REPRISE_API {

/// Names what went wrong, as far as a caller or a judge acts on it. The printed names are stable:
/// reports and scenarios' expectations use them. An Error carries one of those up to kInternal, and
/// ranks tell each other by number; a judge says any.
enum class Code {
  kUsage,                ///< the caller asked for something that has no meaning
  kNotFound,             ///< a file or directory is not there
  kIo,                   ///< the file system failed: read, write, sync, rename
  kNoSpace,              ///< no space left
  kLocked,               ///< another writer is at work there
  kUnsupported,          ///< well-formed, but of a kind that is not handled (says which)
  kTornFile,             ///< truncated, garbled, or not what its name promises
  kRefusedName,          ///< a pickle names something that is never accepted
  kPathEscape,           ///< a stored path leaves the checkpoint's directory
  kLimit,                ///< a claimed size or count exceeds what is really there
  kCoverageGap,          ///< some element or object is in no chunk
  kChunkOverlap,         ///< chunks of one tensor intersect
  kNoWriter,             ///< a box has no main copy
  kMultiWriter,          ///< a box or object has more than one main copy
  kFalseReplica,         ///< copies declared equal hold different bytes
  kNotStored,            ///< requested but not in the checkpoint
  kNotRequested,         ///< in the checkpoint but not requested
  kShapeDrift,           ///< global shapes disagree
  kDtypeDrift,           ///< element types disagree
  kExtentMismatch,       ///< stored bytes and claimed extents disagree
  kCommonStateDiverges,  ///< a value stored once for all ranks differs between ranks
  kLayoutMismatch,       ///< groups, meshes or topology disagree
  kStalePlan,            ///< a cached plan does not fit the live state
  kStaleDistribution,    ///< a cached choice of owners does not fit the live state or its ranks
  kStaleMetadata,        ///< cached metadata is not that of the checkpoint that is read
  kCachePoisoned,        ///< a cache keeps what came of a save that failed
  kKeysetAsymmetry,      ///< ranks disagree on the keys of one save
  kOwnerDisagreement,    ///< ranks disagree on who writes
  kGroupCollision,       ///< two groups have one name
  kWrapperMissing,       ///< a level of a state that stands around others is not there
  kGlobalFallback,       ///< groups were taken from the global registry where that is forbidden
  kIllegalState,         ///< a state that must not be persisted was to be saved
  kLoadRejected,         ///< stored state that its own reader does not accept
  kTrackerDangling,      ///< the tracker names a checkpoint that is not there
  kIncomplete,           ///< a checkpoint was never committed
  kForeignCheckpoint,    ///< another run's checkpoint
  kChecksum,             ///< content and recorded checksum disagree
  kPeerFailed,           ///< another rank failed; the message is that rank's
  kDeadline,             ///< no answer in time
  kDeadlock,             ///< all ranks wait and none can go on
  kCollectiveMismatch,   ///< ranks of one group called different operations
  kStaleDerived,         ///< a derived copy is not what its source gives
  kInternal,             ///< our own mistake, carried to the other ranks

  // Judges alone say these.
  kBitMismatch,           ///< an element differs and nothing known explains how
  kWrongOwner,            ///< an element is another tensor's, or another rank's part
  kShiftedBytes,          ///< an element is another index's of the same tensor
  kZeroFill,              ///< zeros stand where there was content
  kNotFilled,             ///< the poison that stood there before the load
  kReplicaMismatch,       ///< copies that should be equal differ
  kLostObject,            ///< a value or object is not back, or not the same
  kTrajectoryDivergence,  ///< two runs differ at some later step
  kOracleVacuous,         ///< nothing was compared
  kPermutedShards,        ///< an element is another shard's of the same tensor, at the same place
  kPermutedComponents,    ///< an element is another component's of the same fused tensor
  kStaleBytes,            ///< an element is its own place's at another step
  kTornSnapshot,          ///< an element was staged before it was there, or after the job went on
  kRngStreamCollapse,     ///< a random stream equals one that it should differ from
  kRngDrift,              ///< a random stream moved otherwise than by the steps trained
  kLastGoodDeleted,       ///< no whole checkpoint is left of those that were committed
  kCommitMissing,         ///< a save ended well, and no tracker names it
  kMixedGeneration,       ///< ranks went on from different checkpoints
  kDataStreamSkip,        ///< samples were lost or seen twice
  kRestartLoop,           ///< restarts go round without an end and nobody is told
  kVerdictDisagreement,   ///< ranks disagree on what came of an operation
  kMemPeak,               ///< more memory was held than was declared
  kRetentionExceeded,     ///< more checkpoints are left than are to be kept
  kReadTwice,             ///< bytes left storage again that one read was to bring to all ranks
  kScheduleDrift,         ///< the schedule counted other samples than those that were trained on
  kContentDiffers,        ///< equal state is stored as different content
  kNotDeterministic,      ///< one seed, and two courses
  kLanesDisagree,         ///< one scenario, and another course on another lane
  kMutantSurvived,        ///< a wrong engine passed
  kValidatorVacuous,      ///< every wrong engine passed
};
inline constexpr std::size_t kCodes = static_cast<std::size_t>(Code::kValidatorVacuous) + 1;

/// True for codes that an Error may carry, false for those that judges alone say.
constexpr bool is_error(Code code) { return code <= Code::kInternal; }

/// Stable upper-case name, for example "COVERAGE_GAP".
std::string_view name_of(Code code);
/// Prints that name.
std::ostream& operator<<(std::ostream& out, Code code);
/// Inverse of name_of; empty if there is no such name.
std::optional<Code> code_named(std::string_view name);

/// Where it happened; what is not known stays empty.
struct ErrorPlace {
  std::optional<GlobalRank> rank = {};
  std::string key = {};                      ///< tensor or object
  std::string file = {};                     ///< path as the user knows it
  std::optional<std::uint64_t> offset = {};  ///< byte offset in `file`
};

/// `what()` is one line: code, message, then rank, key, file and offset as far as known.
class Error : public std::exception {
 public:
  Error(Code code, std::string message, ErrorPlace place = {});

  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  const ErrorPlace& place() const { return place_; }
  const char* what() const noexcept override { return what_.c_str(); }

  /// The same error with the empty fields of its place filled from `outer`.
  Error within(const ErrorPlace& outer) const;

 private:
  Code code_;
  std::string message_;
  ErrorPlace place_;
  std::string what_;
};

}  // namespace REPRISE_API
