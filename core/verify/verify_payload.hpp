#pragma once
// Reads every item of a checkpoint once, on all threads. Compares headers with the metadata and
// content with checksums, and checks objects against the grammar.

#include <span>

#include "core/checkpoint/checkpoint.hpp"
#include "core/verify/verify.hpp"
#include "core/verify/verify_catalog.hpp"
#include "core/verify/verify_health.hpp"
#include "reprise/inspect.hpp"

namespace reprise {

/// Skips items that lie outside their files, because check_storage reports such items. Adds to the
/// report's findings and opaque keys, and sets records_checked. If `meter` is given, it measures
/// the tensors as they are read. What is found, and its order, does not depend on the number of
/// threads. Throws STALE_METADATA if a file was replaced meanwhile.
void verify_payload(Checkpoint& checkpoint, std::span<const StoredFile> files,
                    const VerifyPorts& ports, VerifyReport& report, HealthMeter* meter = nullptr);

}  // namespace reprise
