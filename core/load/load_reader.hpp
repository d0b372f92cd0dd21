#pragma once
// Reads this rank's share of a load into the job's memory.

#include <memory>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/checksum_tally.hpp"
#include "core/checkpoint/chunk_reader.hpp"
#include "core/plan/load_plan.hpp"
#include "core/save/staging.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/device.hpp"

namespace reprise {

/// Returns the sizes that determine the read buffer for the plan; `most` is the caller's upper
/// limit.
StagingNeed staging_need(const LoadPlan& plan, const Catalog& catalog, const Device& device,
                         Tasks& tasks, std::uint64_t most);
/// Return LoadResult::bound_empty and LoadResult::bound_staging, the limits on the memory that
/// reading uses in addition to the job's own.
std::uint64_t empty_reading_bound(const LoadPlan& plan, const Catalog& catalog);
std::uint64_t reading_bound(const LoadPlan& plan, const Catalog& catalog, const StagingNeed& need);

/// Buffer for reads.
struct Staging {
  std::uint64_t bytes = 0;
  std::uint64_t room = 0;        ///< bytes available to one read; the others may still be copied
  std::uint64_t joined = 0;      ///< adjacent items of at most this many bytes are read together,
  std::size_t joined_items = 1;  ///< if they are at most so many
  std::uint64_t readers = 1;     ///< number of reads that may be on their way at once
};

/// Reads into the leaves of `into`. The constructor's arguments must outlive the reader.
class ShareReader {
 public:
  /// If `checksums` is null, stored checksums are not checked. Several reads may run in `tasks`.
  ShareReader(Checkpoint& checkpoint, Device& device, Tasks& tasks, StateDict& into,
              const Staging& staging, ChecksumTally* checksums, TensorFrames& frames);

  /// Performs one read, or starts it. Errors may come out of a later call.
  void read(const ChunkRead& read);
  /// Waits until everything has been read. It may still be copied.
  void catch_up() { chunks_->catch_up(); }
  /// Returns the number of element bytes read.
  std::uint64_t bytes_read() const { return chunks_->bytes_read(); }
  /// Returns the number of plain objects whose checksums were to be verified and that have none.
  std::uint64_t unverified() const { return unverified_; }
  /// Returns the value of an object. If it is stored in a list of one element, returns that
  /// element; of a plain object, returns its bytes as they are stored.
  Value object(const ObjectRead& read);
  /// Waits until everything read so far is in the leaves.
  void drain();
  /// Fills every target of the plan with 0xBD; no other memory of the leaves.
  void poison(const LoadPlan& plan);

 private:
  void poison(const LoadTarget& target);

  Checkpoint& checkpoint_;
  Device& device_;
  StateDict& into_;
  std::uint64_t unverified_ = 0;
  StagingMemory staging_;
  std::unique_ptr<StagingRing> ring_;
  ChecksumTally* checksums_;
  std::unique_ptr<ChunkReader> chunks_;  ///< stays where it is, since reads refer to it
  std::vector<RegionTarget> targets_;
};

}  // namespace reprise
