#pragma once
// How a load chooses and opens: one rank looks and reads for all. Collective, and alike on all
// ranks.

#include "core/engine/load.hpp"

namespace reprise {

/// As candidates() tells the leader.
Candidates candidates_for_all(Store& store, Communicator& group, const LoadOptions& options);

struct Opened {
  Checkpoint checkpoint;
  std::uint64_t metadata_bytes = 0;  ///< that went round
  MetadataIdentity identity = {};    ///< if the load has a cache
};

/// The leader reads the metadata files; they go round, and each rank parses them. With a cache they
/// do not, if all ranks have kept what they say.
Opened open_for_all(Store& store, Communicator& group, const LoadOptions& options,
                    const Location& location);

}  // namespace reprise
