#pragma once
// How a load chooses and opens: one rank looks and reads for all. Collective, and alike on all
// ranks.

#include "core/engine/load.hpp"
#include "core/seams/load_seams.hpp"

namespace reprise {

/// As candidates() tells the leader; where ranks' trackers differ, from the newest of these on.
/// TRACKER_DANGLING naming the rank whose store does not have that.
Candidates candidates_for_all(Store& store, Communicator& group, const LoadSettings& options,
                              const LoadSeams& seams);

struct Opened {
  Checkpoint checkpoint;
  std::uint64_t metadata_bytes = 0;  ///< that went round
  MetadataIdentity identity = {};    ///< if the load has a cache
};

/// The leader broadcasts the metadata files, and each rank parses them; both are skipped if every
/// rank has the metadata cached.
Opened open_for_all(Store& store, Communicator& group, const LoadSettings& options,
                    const LoadSeams& seams, const Location& location);

}  // namespace reprise
