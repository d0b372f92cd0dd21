#pragma once
// Is a checkpoint whole? Everything that can be known without the job that wrote it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/checkpoint.hpp"
#include "core/engine/finding.hpp"
#include "reprise/inspect.hpp"
#include "reprise/ports.hpp"

namespace reprise {

enum class PayloadCheck : std::uint8_t {
  kRead,  ///< every item's header and every byte's checksum
  kSkip,  ///< metadata, sizes, names and common state alone
};

struct VerifyReport {
  std::optional<Location> location;  ///< nothing if no checkpoint was found
  Findings findings;                 ///< in the order of the checks
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t objects = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;            ///< of all items
  std::uint64_t records_checked = 0;  ///< against their checksums
  std::vector<std::string> opaque;    ///< keys of objects that are not interpreted
  bool payload_read = false;
  bool manifest = false;  ///< all files were compared with an integrity.json

  /// Nothing was named by the metadata, so nothing was examined.
  bool vacuous() const { return location && tensors + objects == 0; }
  bool whole() const { return count_of(findings, Severity::kError) == 0; }
  VerifyVerdict verdict() const;
  /// Warnings that are no signs of mixed saves.
  std::size_t strict_warnings() const;
};

/// What is wrong becomes a finding. Throws an Error only where nothing could be examined: NOT_FOUND
/// (no checkpoint at `path`) and IO.
VerifyReport verify(Store& store, const std::string& path, PayloadCheck payload,
                    Progress& progress);

}  // namespace reprise
