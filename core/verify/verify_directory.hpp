#pragma once
// Checks the files next to the payload: files that the metadata does not list, the manifest,
// metadata.json, and leftovers of crashed saves.

#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/finding.hpp"
#include "core/verify/verify.hpp"

namespace reprise {

/// Warns of non-empty payload files that the metadata does not list. An empty payload file is
/// normal, because a rank may have had nothing to write. Also warns of `.metadata.tmp` files, left
/// by a save that ended before it renamed them. Adds a note if there are metadata files of
/// individual ranks next to `.metadata`.
Findings check_stale_files(Checkpoint& checkpoint);

/// Checks metadata.json. The backend must be torch_dist. If metadata.json says that common.pt
/// exists, it must exist.
Findings check_backend_info(Checkpoint& checkpoint);

/// If there is an integrity.json, reads every file, each on one thread, and compares its SHA-256
/// with the one in integrity.json. Warns of each file of the checkpoint that is not listed.
Findings check_manifest(Checkpoint& checkpoint, const VerifyPorts& ports);

/// True if there is an integrity.json that lists the metadata and every other file of the
/// checkpoint. Only such a manifest tells the files of two saves apart.
bool manifest_lists_all(Checkpoint& checkpoint);

/// Reports leftovers next to the checkpoint that unfinished saves of this checkpoint left, or any
/// save below its root if a tracker chose it. Notes list the marked leftovers and say whether they
/// may be removed. What a writer at work made is not judged: a note names it. A warning is given
/// for each
/// `*.replaced` directory that is the only copy of a checkpoint.
Findings check_leftovers(Checkpoint& checkpoint);

/// If a tracker chose the checkpoint, reports later iterations beside it. It is a warning if one
/// was saved after the tracker was written, which should then name it. Otherwise it is a note: a
/// job may have gone back, and saves of others may go on.
Findings check_later_iterations(Checkpoint& checkpoint);

/// Warns if a file beside the checkpoint, or beside the directory around it, says that its save did
/// not end: NeMo keeps `<checkpoint>-unfinished` until then.
Findings check_unfinished_marker(Checkpoint& checkpoint);

/// Returns the directories of checkpoints within the checkpoint, such as modelopt_state.
std::vector<std::string> checkpoints_within(Checkpoint& checkpoint);

}  // namespace reprise
