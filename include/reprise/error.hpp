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

/// Names what went wrong, as far as a caller acts on it. The printed names are the enumerators' in
/// upper case (kCoverageGap is COVERAGE_GAP) and stable; the numbers are not.
enum class Code : std::uint32_t {
  kUsage,                  ///< the caller asked for something that has no meaning
  kNotFound,               ///< a file or directory is not there
  kIo,                     ///< the file system failed: read, write, sync, rename
  kNoSpace,                ///< no space left
  kLocked,                 ///< another writer is at work there
  kUnsupported,            ///< well-formed, but of a kind that is not handled (says which)
  kTornFile,               ///< truncated, garbled, or not what its name promises
  kRefusedName,            ///< a pickle names something that is never accepted
  kPathEscape,             ///< a stored path leaves the checkpoint's directory
  kLimit,                  ///< a claimed size or count exceeds what is really there
  kCoverageGap,            ///< some element or object is in no chunk
  kChunkOverlap,           ///< chunks of one tensor intersect
  kNoWriter,               ///< a box has no main copy
  kMultiWriter,            ///< a box or object has more than one main copy
  kFalseReplica,           ///< copies declared equal hold different bytes
  kNotStored,              ///< requested but not in the checkpoint
  kNotRequested,           ///< in the checkpoint but not requested
  kShapeDrift,             ///< global shapes disagree
  kDtypeDrift,             ///< element types disagree
  kExtentMismatch,         ///< stored bytes and claimed extents disagree
  kCommonStateDiverges,    ///< a value stored once for all ranks differs between ranks
  kLayoutMismatch,         ///< groups, meshes or topology disagree
  kStalePlan,              ///< a cached plan does not fit the live state
  kStaleDistribution,      ///< a cached choice of owners does not fit the live state or its ranks
  kStaleMetadata,          ///< cached metadata is not that of the checkpoint that is read
  kCachePoisoned,          ///< a cache keeps what came of a save that failed
  kKeysetAsymmetry,        ///< ranks disagree on the keys of one save
  kOwnerDisagreement,      ///< ranks disagree on who writes
  kGroupCollision,         ///< two groups have one name
  kWrapperMissing,         ///< a level of a state that stands around others is not there
  kGlobalFallback,         ///< groups were taken from the global registry where that is forbidden
  kIllegalStatePersisted,  ///< a state that must not be persisted was to be saved
  kLoadRejected,           ///< stored state that its own reader does not accept
  kTrackerDangling,        ///< the tracker names a checkpoint that is not there
  kIncompleteSelected,     ///< a checkpoint was never committed
  kForeignCheckpoint,      ///< another run's checkpoint
  kChecksum,               ///< content and recorded checksum disagree
  kPeerFailed,             ///< another rank failed; the message is that rank's
  kDeadline,               ///< no answer in time
  kHang,                   ///< all ranks wait and none can go on
  kCollectiveMismatch,     ///< ranks of one group called different operations
  kStaleDerived,           ///< a derived copy is not what its source gives
  kInternal,               ///< our own mistake, carried to the other ranks
};

/// Stable upper-case name, for example "COVERAGE_GAP".
std::string_view name_of(Code code);
/// Prints that name.
std::ostream& operator<<(std::ostream& out, Code code);

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
