#pragma once
// What an examination of a checkpoint has to say, one thing at a time.

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"

namespace reprise {

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
  friend std::ostream& operator<<(std::ostream& out, const Finding& finding);
  friend bool operator==(const Finding&, const Finding&) = default;
};

using Findings = std::vector<Finding>;

Finding finding_from(const Error& error, Severity severity = Severity::kError);

std::size_t count_of(const Findings& findings, Severity severity);

}  // namespace reprise
