#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/plan/shared_reads.hpp"
#include "core/plan/strictness.hpp"
#include "core/seams/cache_seams.hpp"
#include "core/seams/leader_seams.hpp"
#include "reprise/error.hpp"
#include "reprise/types.hpp"

namespace reprise {

struct StagingNeed;

/// One entry per group rank: the iteration that the rank's tracker names. An entry is empty if the
/// tracker names a release or cannot be read.
using TrackedSteps = std::vector<std::optional<Step>>;
/// Returns the newest iteration that any rank's tracker names. Trackers differ if ranks see
/// different stores.
std::optional<Step> newest_tracked(const TrackedSteps& tracked, GroupRank leader);

/// One entry per group rank: the fault that the rank found in one candidate. An entry is empty if
/// the rank found no fault.
using Votes = std::vector<std::optional<Error>>;
struct Opened;

/// one_read() returns how much one read may use: the size of the largest item, but at most its
/// share of the given limit. read_ring() returns the size of staging for several such reads at
/// once. It is at most half of all that is read, unless one read needs more.
std::uint64_t one_read(const StagingNeed& need);
std::uint64_t read_ring(const StagingNeed& need);

/// The counts of checksums by file.
struct FileChecksums;
/// Adds up what the ranks counted: one entry per group rank.
FileChecksums add_up(std::span<const FileChecksums> of_ranks, GroupRank self);

/// Returns the rank whose own metadata this rank reads: this rank.
GroupRank own_rank(const Communicator& group);

/// Decides which bytes each rank reads, and to which ranks they are sent. Each round transfers at
/// most `room` bytes.
using ShareReads = SharedReads (*)(std::span<const AlikeReaders> classes, std::uint64_t room);

struct LoadSeams {
  /// Decides whether a load accepts a difference between requested and stored keys.
  StrictVerdict (*judge_strictness)(Strictness mode, const KeyMismatch& keys) = judge;
  /// Chooses which of the iterations named by the ranks' trackers is loaded.
  std::optional<Step> (*tracked)(const TrackedSteps& tracked, GroupRank leader) = newest_tracked;
  /// Called on each rank with a candidate that all ranks have checked. Returns the checkpoint that
  /// this rank loads if no rank found a fault in the candidate. It is a std::function because a
  /// replacement may need state.
  std::function<std::shared_ptr<Opened>(std::shared_ptr<Opened> candidate, const Votes& votes,
                                        GroupRank self)>
      choose_candidate =
          [](std::shared_ptr<Opened> candidate, const Votes&, GroupRank) { return candidate; };
  /// Returns the counts by which rank `self` tells if a file was written without checksums.
  FileChecksums (*checksums)(std::span<const FileChecksums> of_ranks, GroupRank self) = add_up;
  /// Returns the rank whose metadata this rank reads, if each rank wrote its own.
  GroupRank (*own_metadata)(const Communicator& group) = own_rank;
  /// Chooses the rank that reads for all ranks.
  LeaderSeams leader;
  /// Returns the size of the read buffer in bytes.
  std::uint64_t (*staging)(const StagingNeed& need) = read_ring;
  /// Assigns reads to ranks; used if each byte is read once per job.
  ShareReads share = shared_reads;
};

}  // namespace reprise
