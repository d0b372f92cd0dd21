#pragma once
// Reads every item of a checkpoint once: headers against the metadata, objects against the grammar,
// content against checksums.

#include <span>

#include "core/engine/checkpoint.hpp"
#include "core/engine/verify.hpp"
#include "core/engine/verify_catalog.hpp"
#include "reprise/inspect.hpp"

namespace reprise {

/// Items outside their files (see check_storage) are passed over: they were reported. Fills
/// findings, opaque and records_checked of the report.
void verify_payload(Checkpoint& checkpoint, std::span<const StoredFile> files, Progress& progress,
                    VerifyReport& report);

}  // namespace reprise
