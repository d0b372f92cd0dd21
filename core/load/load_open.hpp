#pragma once
// Chooses and opens the checkpoint of a load: one rank does the I/O for all. Collective, with the
// same result on all ranks.

#include "core/load/load_seamed.hpp"

namespace reprise {

/// Returns the result of candidates() on the leader. If trackers differ between ranks, the list
/// starts at the iteration of the newest tracker. Throws TRACKER_DANGLING if a rank's store lacks
/// that iteration; the error names such a rank.
Candidates candidates_for_all(Store& store, Communicator& group, const LoadOptions& options,
                              const LoadSeams& seams);

struct Opened {
  Checkpoint checkpoint;
  std::uint64_t metadata_bytes = 0;  ///< metadata bytes that were broadcast
};

/// The leader broadcasts the metadata files, together with a hash of their names and contents, and
/// each rank parses them, or looks them up in `parsed`, if that is not null.
Opened open_for_all(Store& store, Communicator& group, const LoadSeams& seams,
                    const Location& location, ParsedMetadata* parsed);
/// Does neither, because every rank has the metadata already. Not collective.
Opened opened_as(const KnownMetadata& known, Store& store, const Location& location);

}  // namespace reprise
