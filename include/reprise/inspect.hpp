#pragma once
// Looks at checkpoints without the job that wrote them. Not collective: one rank may call alone.

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/error.hpp"

namespace reprise REPRISE_API {

class Job;

/// Hears of long work as it goes on, for a person who waits. `done` and `total` are in bytes or
/// items of one kind. An exception of it ends the work and reaches
/// the caller.
class Progress {
 public:
  virtual ~Progress() = default;
  virtual void advance(std::string_view what, std::uint64_t done, std::uint64_t total) = 0;
};

enum class Severity : std::uint8_t {
  kError,    ///< the checkpoint does not hold what it says; a load of it fails or lies
  kWarning,  ///< usable, but something is not as a good writer leaves it
  kNote,     ///< legal, worth knowing
};

/// "error", "warning", "note".
std::string_view name_of(Severity severity);

struct Finding {
  Severity severity = Severity::kError;
  Code code = Code::kTornFile;
  std::string message;
  std::string key = {};                      ///< tensor or object, if it is about one
  std::string file = {};                     ///< as the user knows it, if it is about one
  std::optional<std::uint64_t> offset = {};  ///< in that file, in bytes

  /// "error COVERAGE_GAP: message [key k, file f, offset o]"
  friend REPRISE_API std::ostream& operator<<(std::ostream& out, const Finding& finding);
  friend bool operator==(const Finding&, const Finding&) = default;
};

using Findings = std::vector<Finding>;

enum class VerifyVerdict : std::uint8_t {
  kWhole,
  kEmpty,         ///< nothing was named by the metadata, so nothing was examined
  kNotSupported,  ///< no damage was found, and something is of a kind that is not read
  kUnreadable,    ///< no damage was found, and something could not be read
  kDamaged,
};
/// "whole", "empty", "not supported", "unreadable", "damaged".
std::string_view name_of(VerifyVerdict verdict);

struct Verification {
  VerifyVerdict verdict = VerifyVerdict::kEmpty;
  Findings findings;  ///< in the order of the checks
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t objects = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;  ///< of all items
};

/// Reads all of the checkpoint that `directory` means, and holds it against its metadata and its
/// checksums. What is wrong becomes a finding; throws an Error only where nothing could be examined
/// (NOT_FOUND, IO). `progress` may be null.
Verification verify(Job& job, const std::string& directory, Progress* progress = nullptr);

/// What a diff comes to.
enum class DiffOutcome : std::uint8_t {
  kSame,            ///< all that takes part was compared, and none of it differs
  kDifferent,       ///< something differs, whatever else was not compared
  kNotAllCompared,  ///< nothing differs, and something was not compared
  kNothingCompared,
  kDamaged,  ///< bytes changed after a save, so that no verdict can be relied on
};
/// "same", "different", "not all compared", ...
std::string_view name_of(DiffOutcome outcome);

struct DiffSummary {
  DiffOutcome outcome = DiffOutcome::kNothingCompared;
  std::vector<std::string> different;     ///< keys that differ or are on one side alone
  std::vector<std::string> not_compared;  ///< keys of which nothing can be said
  std::uint64_t elements = 0;             ///< compared
  Findings damage;                        ///< wrong checksums: the outcome is kDamaged
};

/// Compares the content of two checkpoints, whatever their sharding: tensors bit for bit, objects
/// and common state as values. Throws an Error where bytes that are needed cannot
/// be read, UNSUPPORTED if the device's memory is not the host's. `progress` may be null.
DiffSummary diff(Job& job, const std::string& left, const std::string& right,
                 Progress* progress = nullptr);

}  // namespace REPRISE_API
