#pragma once
// Checks that a checkpoint is undamaged, as far as that is possible without the job that wrote it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/finding.hpp"
#include "core/verify/verify_health.hpp"
#include "reprise/device.hpp"
#include "reprise/inspect.hpp"
#include "reprise/ports.hpp"

namespace reprise {

enum class PayloadCheck : std::uint8_t {
  kRead,  ///< reads every item's header and compares every byte with its checksum
  kSkip,  ///< reads only metadata, sizes, names and common state
};

struct VerifyReport {
  std::optional<Location> location;  ///< empty if there is no checkpoint
  std::string where;                 ///< the directory that was looked at, as the user knows it
  Findings findings;                 ///< findings in the order of the checks
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t objects = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;            ///< total size of all items
  std::uint64_t records_checked = 0;  ///< number of records compared with their checksums
  std::vector<std::string> opaque;    ///< keys of objects whose content is not interpreted
  bool payload_read = false;
  bool manifest = false;          ///< true if all files were compared with an integrity.json
  bool sealed = false;            ///< true if all files were compared with a seal (core/seal)
  bool partial_manifest = false;  ///< true if there is one that does not list all files
  std::optional<HealthReport> health = {};  ///< if it was asked for
  bool no_checksums = false;  ///< true if there are tensors without checksums: safetensors

  /// True if the metadata lists nothing, so that nothing was examined.
  bool vacuous() const { return location && tensors + objects == 0; }
  bool whole() const { return count_of(findings, Severity::kError) == 0; }
  VerifyVerdict verdict() const;
  /// Returns the number of warnings, which `--strict` takes for errors.
  std::size_t strict_warnings() const;
};

/// Asks for VerifyReport::health.
struct HealthRequest {
  HealthLimits limits;
  Device& device;  ///< of the host
};

struct VerifyPorts {
  /// Each thread needs about 2 MiB, or 8 MiB for numbers that are read again, and four times as
  /// much for an object of up to 4 MiB; of larger ones one is in memory at a time.
  Tasks& tasks;
  Progress& progress;
};

/// Verifies the checkpoint at `path`. Problems become findings. Throws an Error only if nothing
/// could be examined: NOT_FOUND if there is no checkpoint, or IO. `health` takes effect if the
/// payload is read.
VerifyReport verify(Store& store, const std::string& path, PayloadCheck payload,
                    const VerifyPorts& ports, const HealthRequest* health = nullptr);
/// The same on the caller's thread.
VerifyReport verify(Store& store, const std::string& path, PayloadCheck payload, Progress& progress,
                    const HealthRequest* health = nullptr);
/// The same for a checkpoint that is open. Throws STALE_METADATA if it is replaced meanwhile. A
/// record of torch.save that was compared before with this metadata is not compared again.
VerifyReport verify(Checkpoint& checkpoint, PayloadCheck payload, const VerifyPorts& ports,
                    const HealthRequest* health = nullptr);

}  // namespace reprise
