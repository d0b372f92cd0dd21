#pragma once
// Checks the files next to the payload: unnamed files, the manifest, metadata.json, leftovers of
// crashed saves.

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/finding.hpp"
#include "reprise/inspect.hpp"

namespace reprise {

/// Reports payload files that the metadata does not name (warning; empty ones are normal: a rank
/// with nothing to write), metadata that was never put in place, and metadata of single ranks next
/// to `.metadata` (note).
Findings check_stale_files(Checkpoint& checkpoint);

/// Checks metadata.json: backend is torch_dist, and common.pt exists if it promises one.
Findings check_backend_info(Checkpoint& checkpoint);

/// Checks that each file has the SHA-256 in integrity.json, if there is one. Reads every file.
Findings check_manifest(Checkpoint& checkpoint, Progress& progress);

/// Reports marked leftovers of unfinished saves next to the checkpoint: a note that says
/// if one may be removed, or a warning if a `*.replaced` is the only copy of what it
/// replaced.
Findings check_leftovers(Checkpoint& checkpoint);

}  // namespace reprise
