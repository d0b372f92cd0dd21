#pragma once
// What lies beside the payload: files that nothing names, the manifest, metadata.json, leftovers of
// crashed saves.

#include "core/engine/checkpoint.hpp"
#include "core/engine/finding.hpp"
#include "reprise/inspect.hpp"

namespace reprise {

/// Payload files that the metadata does not name (warning; empty ones are normal: a rank that had
/// nothing to write), metadata that was never put in
/// place, and that of single ranks beside `.metadata` (note).
Findings check_stale_files(Checkpoint& checkpoint);

/// metadata.json says what is there: backend torch_dist, and common.pt where it promises one.
Findings check_backend_info(Checkpoint& checkpoint);

/// integrity.json, if there is one: each file has its SHA-256. Reads every file.
Findings check_manifest(Checkpoint& checkpoint, Progress& progress);

/// What saves that did not finish set aside beside the checkpoint, if it carries this program's
/// mark: whether it may be removed (note); a `*.replaced` that is the only copy
/// of what it replaced (warning).
Findings check_leftovers(Checkpoint& checkpoint);

}  // namespace reprise
