#pragma once
// Defines the error codes, and an exception type that carries a code and says where the error
// happened.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "reprise/types.hpp"

namespace reprise REPRISE_API {

/// Kinds of errors; a caller may react to each kind differently. A code is printed as its
/// enumerator in upper case: kCoverageGap prints as COVERAGE_GAP. Printed names are stable; the
/// numbers may change, and some numbers are unused here.
enum class Code : std::uint32_t {
  kUsage,         ///< the request makes no sense
  kNotFound,      ///< a file or directory does not exist
  kIo,            ///< the file system failed: read, write, sync, rename
  kNoSpace,       ///< no space left
  kLocked,        ///< another writer holds the path
  kUnsupported,   ///< the input is well-formed, but of an unsupported kind; the message says which
  kTornFile,      ///< a file is truncated, garbled, or not of the kind that its name promises
  kRefusedName,   ///< a pickle refers to a name that is never accepted
  kPathEscape,    ///< a stored path points outside the checkpoint's directory
  kLimit,         ///< the input states a size or count larger than the data present
  kCoverageGap,   ///< some element or object is not stored in any chunk
  kChunkOverlap,  ///< chunks of one tensor intersect
  kNoWriter,      ///< a box has no main copy
  kMultiWriter,   ///< a box or object has more than one main copy
  kInterrupted,   ///< the job was told to stop (JobOptions::interrupted)
  kNotStored,     ///< a tensor or object was requested but is not in the checkpoint
  kNotRequested,  ///< a tensor or object is in the checkpoint but was not requested
  kShapeDrift,    ///< global shapes of one tensor disagree
  kDtypeDrift,    ///< element types of one tensor disagree
  kExtentMismatch,       ///< the stored byte count disagrees with the claimed extents
  kCommonStateDiverges,  ///< a value stored once for all ranks differs between ranks
  kLayoutMismatch,       ///< groups, meshes or topology disagree
  kStalePlan,            ///< a cached plan does not match the live state
  kStaleDistribution,    ///< the cached choice of which ranks write does not match the live state
  kStaleMetadata,        ///< cached metadata does not belong to the checkpoint being read
  kCachePoisoned,        ///< a cache holds results of a save that failed
  kLoadRejected = 32,    ///< the stored state is readable, but its content fails a check
  kTrackerDangling,      ///< the tracker refers to a checkpoint that does not exist
  kIncompleteSelected,   ///< the checkpoint was never committed
  kChecksum = 36,        ///< the content disagrees with its recorded checksum
  kPeerFailed,           ///< another rank failed; the message comes from that rank
  kDeadline,             ///< another rank did not answer in time
  kCollectiveMismatch = 40,  ///< ranks of one group called different operations
  kInternal = 42,            ///< a bug in this library; it is reported to the other ranks too
};

/// Returns the stable upper-case name, for example "COVERAGE_GAP".
std::string_view name_of(Code code);
/// Prints name_of(code).
std::ostream& operator<<(std::ostream& out, Code code);

/// Where an error happened. Unknown fields stay empty.
struct ErrorPlace {
  std::optional<GlobalRank> rank = {};
  std::string key = {};                      ///< key of the tensor or object
  std::string file = {};                     ///< path as the user knows it; messages use it
  std::optional<std::uint64_t> offset = {};  ///< byte offset in `file`
};

/// An error with its code and where it happened. `what()` is one line: code, message, then rank,
/// key, file and offset if known.
class Error : public std::exception {
 public:
  Error(Code code, std::string message, ErrorPlace place = {});

  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  const ErrorPlace& place() const { return place_; }
  const char* what() const noexcept override { return what_.c_str(); }

  /// Returns a copy of this error in which empty fields of place() are filled from `outer`.
  Error within(const ErrorPlace& outer) const;

 private:
  Code code_;
  std::string message_;
  ErrorPlace place_;
  std::string what_;
};

}  // namespace REPRISE_API
