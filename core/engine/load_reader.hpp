#pragma once
// How a load puts this rank's share into its place.

#include <vector>

#include "core/engine/checkpoint.hpp"
#include "core/engine/checksum_tally.hpp"
#include "core/engine/chunk_reader.hpp"
#include "core/engine/load_staging.hpp"
#include "core/plan/load_plan.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/device.hpp"

namespace reprise {

/// What the plan's reads want of staging, of which at most `most` bytes may be taken.
StagingNeed staging_need(const LoadPlan& plan, const Catalog& catalog, const Device& device,
                         std::uint64_t most);
/// What is held beside the job's memory while they are done: LoadReport::bound_staging.
std::uint64_t empty_reading_bound(const LoadPlan& plan, const Catalog& catalog);
std::uint64_t reading_bound(const LoadPlan& plan, const Catalog& catalog, const StagingNeed& need);

/// What reads go through, in bytes.
struct Staging {
  std::uint64_t bytes = 0;
  std::uint64_t room = 0;  ///< for one read
};

/// Reads into the leaves of `into`. All that it is given outlives it.
class ShareReader {
 public:
  /// `checksums` is null if they are ignored.
  ShareReader(Checkpoint& checkpoint, Device& device, StateDict& into, const Staging& staging,
              ChecksumTally* checksums);

  /// Element bytes that were read.
  std::uint64_t read(const ChunkRead& read);
  /// The stored value; the list of one that it is wrapped in is taken off.
  Value object(const StoredObject& stored);
  /// All that the plan was to fill: 0xBD.
  void poison(const LoadPlan& plan);

 private:
  void poison(const TensorLeaf& leaf);

  Checkpoint& checkpoint_;
  Device& device_;
  StateDict& into_;
  StagingMemory staging_;
  StagingRing ring_;
  ChecksumTally* checksums_;
  ChunkReader chunks_;
  std::vector<RegionTarget> targets_;
};

}  // namespace reprise
