#pragma once
// Checks that a checkpoint is undamaged, as far as possible without the job that wrote it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/finding.hpp"
#include "reprise/inspect.hpp"
#include "reprise/ports.hpp"

namespace reprise {

enum class PayloadCheck : std::uint8_t {
  kRead,  ///< reads every item's header and checks every byte against checksums
  kSkip,  ///< reads only metadata, sizes, names and common state
};

struct VerifyReport {
  std::optional<Location> location;  ///< nothing if there is no checkpoint
  Findings findings;                 ///< in the order of the checks
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t objects = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;            ///< bytes of all items
  std::uint64_t records_checked = 0;  ///< records compared with their checksums
  std::vector<std::string> opaque;    ///< keys of objects that are not interpreted
  bool payload_read = false;
  bool manifest = false;  ///< true if all files were compared with an integrity.json

  /// True if the metadata names nothing, so that nothing was examined.
  bool vacuous() const { return location && tensors + objects == 0; }
  bool whole() const { return count_of(findings, Severity::kError) == 0; }
  VerifyVerdict verdict() const;
  /// Returns the number of warnings, not counting signs of mixed saves.
  std::size_t strict_warnings() const;
};

/// Turns problems into findings. Throws an Error only if nothing could be examined: NOT_FOUND (no
/// checkpoint at `path`) and IO.
VerifyReport verify(Store& store, const std::string& path, PayloadCheck payload,
                    Progress& progress);

}  // namespace reprise
