#pragma once

#include <cstddef>
#include <cstdint>
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

/// Iterations that the ranks' trackers name, by group rank. Nothing where a tracker names none (a
/// release) or can't be read.
using TrackedSteps = std::vector<std::optional<Step>>;
/// Returns the newest iteration that any rank knows of: a job goes on from it where its ranks look
/// at different stores.
std::optional<Step> newest_tracked(const TrackedSteps& tracked, GroupRank leader);

/// Faults that the ranks found in one candidate, by group rank; nothing where a rank found none.
using Votes = std::vector<std::optional<Error>>;
/// Returns the first candidate in which no rank found a fault, the same on all ranks. `votes` are
/// on the candidates so far, in their order.
std::optional<std::size_t> first_whole(const std::vector<Votes>& votes, GroupRank self);

/// Returns the bytes of staging for one read at a time: no read takes more than the largest item,
/// and none more than is allowed.
std::uint64_t one_read(const StagingNeed& need);

struct LoadSeams {
  /// Judges a difference between requested and stored keys.
  StrictVerdict (*judge_strictness)(Strictness mode, const KeyMismatch& keys) = judge;
  /// Returns the iteration to load, of those that the ranks' trackers name.
  std::optional<Step> (*tracked)(const TrackedSteps& tracked, GroupRank leader) = newest_tracked;
  /// Returns the candidate that `self` takes, if there is one.
  std::optional<std::size_t> (*choose_candidate)(const std::vector<Votes>& votes,
                                                 GroupRank self) = first_whole;
  /// Decides who reads for all.
  LeaderSeams leader;
  MetadataCacheSeams cache;
  /// Returns how many bytes of staging the reads go through.
  std::uint64_t (*staging)(const StagingNeed& need) = one_read;
  /// Says who reads which records for whom, where each byte is read once per job.
  SharedReads (*share)(std::span<const AlikeReaders> classes, std::uint64_t room) = shared_reads;
};

}  // namespace reprise
