#pragma once
// Inspects checkpoints without the job that wrote them. These calls are not collective: a single
// rank may make them.

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/error.hpp"

namespace reprise REPRISE_API {

class Job;

/// Reports the progress of a long operation to a waiting user. `done` and `total` count bytes or
/// items, the same unit for both. If an implementation throws an exception, the work stops and the
/// caller receives the exception.
class Progress {
 public:
  virtual ~Progress() = default;
  virtual void advance(std::string_view what, std::uint64_t done, std::uint64_t total) = 0;
};

enum class Severity : std::uint8_t {
  kError,    ///< the checkpoint is not what it claims to be; loading it fails or gives wrong data
  kWarning,  ///< the checkpoint is usable, but a correct writer would not leave it like this
  kNote,     ///< legal, but worth knowing
};

/// Returns "error", "warning" or "note".
std::string_view name_of(Severity severity);

struct Finding {
  Severity severity = Severity::kError;
  Code code = Code::kTornFile;
  std::string message;
  std::string key = {};   ///< tensor or object that the finding concerns, if any
  std::string file = {};  ///< path as the user knows it, if the finding concerns a file
  std::optional<std::uint64_t> offset = {};  ///< byte offset in `file`

  /// Prints "error COVERAGE_GAP: message [key k, file f, offset o]".
  friend REPRISE_API std::ostream& operator<<(std::ostream& out, const Finding& finding);
  friend bool operator==(const Finding&, const Finding&) = default;
};

using Findings = std::vector<Finding>;

enum class VerifyVerdict : std::uint8_t {
  kWhole,
  kEmpty,         ///< the metadata lists nothing, so nothing was examined
  kNotSupported,  ///< no damage found, but some part is of an unsupported kind
  kUnreadable,    ///< no damage found, but some part could not be read
  kDamaged,
};
/// Returns "whole", "empty", "not supported", "unreadable" or "damaged".
std::string_view name_of(VerifyVerdict verdict);

struct Verification {
  VerifyVerdict verdict = VerifyVerdict::kEmpty;
  Findings findings;  ///< findings in the order of the checks
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t objects = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;  ///< bytes of all items together
};

/// Reads all of the checkpoint in `directory` and compares it with its metadata and checksums.
/// Problems become findings; an Error is thrown only if nothing could be examined (NOT_FOUND, IO).
/// `progress` may be null.
Verification verify(Job& job, const std::string& directory, Progress* progress = nullptr);

/// Result of a diff.
enum class DiffOutcome : std::uint8_t {
  kSame,            ///< everything was compared, and nothing differs
  kDifferent,       ///< something differs; other parts may not have been compared
  kNotAllCompared,  ///< nothing differs, but something was not compared
  kNothingCompared,
  kDamaged,  ///< wrong checksums or contradictions: bytes changed, so no verdict is reliable
};
/// Returns "same", "different", "not all compared", ...
std::string_view name_of(DiffOutcome outcome);

struct DiffSummary {
  DiffOutcome outcome = DiffOutcome::kNothingCompared;
  std::vector<std::string> different;     ///< keys that differ or exist on one side only
  std::vector<std::string> not_compared;  ///< keys that could not be compared or read
  std::uint64_t elements = 0;             ///< elements compared
  Findings damage;  ///< wrong checksums, contradictions; the outcome is then kDamaged
};

/// Compares the content of two checkpoints, whatever their sharding: tensors bit for bit, objects
/// and common state as values. Goes on past an item that can't be read. Throws an Error if a
/// checkpoint can't be opened or the device has no host memory. `progress` may be null.
DiffSummary diff(Job& job, const std::string& left, const std::string& right,
                 Progress* progress = nullptr);

}  // namespace REPRISE_API
