#pragma once
// The list of error codes, and the exception type that carries a code and where it happened.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "reprise/types.hpp"

namespace reprise REPRISE_API {

/// Says what went wrong, in as much detail as a caller can act on. Printed names are the
/// enumerators in upper case (kCoverageGap is COVERAGE_GAP) and stable; the numbers are not,
/// and some are left out.
enum class Code : std::uint32_t {
  kUsage,                ///< the request makes no sense
  kNotFound,             ///< a file or directory does not exist
  kIo,                   ///< the file system failed: read, write, sync, rename
  kNoSpace,              ///< no space left
  kLocked,               ///< another writer holds the path
  kUnsupported,          ///< well-formed, but of a kind not supported; the message says which
  kTornFile,             ///< truncated, garbled, or not the kind its name promises
  kRefusedName,          ///< a pickle refers to a name that is never accepted
  kPathEscape,           ///< a stored path points outside the checkpoint's directory
  kLimit,                ///< a claimed size or count exceeds the data present
  kCoverageGap,          ///< some element or object is not stored in any chunk
  kChunkOverlap,         ///< chunks of one tensor intersect
  kNoWriter,             ///< a box has no main copy
  kMultiWriter,          ///< a box or object has more than one main copy
  kNotStored = 15,       ///< requested but not in the checkpoint
  kNotRequested,         ///< in the checkpoint but not requested
  kShapeDrift,           ///< global shapes disagree
  kDtypeDrift,           ///< element types disagree
  kExtentMismatch,       ///< stored byte count and claimed extents disagree
  kCommonStateDiverges,  ///< a value stored once for all ranks differs between ranks
  kLayoutMismatch,       ///< groups, meshes or topology disagree
  kStalePlan,            ///< a cached plan does not match the live state
  kStaleDistribution,    ///< a cached choice of owners does not match the live state or its ranks
  kStaleMetadata,        ///< cached metadata does not belong to the checkpoint being read
  kCachePoisoned,        ///< a cache holds results of a save that failed
  kLoadRejected = 32,    ///< stored state that its own reader rejects
  kTrackerDangling,      ///< the tracker names a checkpoint that does not exist
  kIncompleteSelected,   ///< the checkpoint was never committed
  kChecksum = 36,        ///< content and recorded checksum disagree
  kPeerFailed,           ///< another rank failed; the message comes from that rank
  kDeadline,             ///< no answer in time
  kCollectiveMismatch = 40,  ///< ranks of one group called different operations
  kInternal = 42,            ///< our own bug, reported to the other ranks
};

/// Returns the stable upper-case name, for example "COVERAGE_GAP".
std::string_view name_of(Code code);
/// Prints name_of(code).
std::ostream& operator<<(std::ostream& out, Code code);

/// Place where an error happened; unknown fields stay empty.
struct ErrorPlace {
  std::optional<GlobalRank> rank = {};
  std::string key = {};                      ///< tensor or object
  std::string file = {};                     ///< path as the user knows it
  std::optional<std::uint64_t> offset = {};  ///< byte offset in `file`
};

/// `what()` is one line: code, message, then rank, key, file and offset if known.
class Error : public std::exception {
 public:
  Error(Code code, std::string message, ErrorPlace place = {});

  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  const ErrorPlace& place() const { return place_; }
  const char* what() const noexcept override { return what_.c_str(); }

  /// Returns this error, with the empty fields of its place filled from `outer`.
  Error within(const ErrorPlace& outer) const;

 private:
  Code code_;
  std::string message_;
  ErrorPlace place_;
  std::string what_;
};

}  // namespace REPRISE_API
