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

/// Iterations named by the ranks' trackers, by group rank. Nothing if a tracker names none (a
/// release) or cannot be read.
using TrackedSteps = std::vector<std::optional<Step>>;
/// Returns the newest iteration known to any rank: a job whose ranks see different stores resumes
/// from it.
std::optional<Step> newest_tracked(const TrackedSteps& tracked, GroupRank leader);

/// Faults that the ranks found in one candidate, by group rank; nothing for a rank that found none.
using Votes = std::vector<std::optional<Error>>;
/// Returns the first candidate without a fault on any rank, the same on all ranks. `votes` lists
/// the candidates so far, in order.
std::optional<std::size_t> first_whole(const std::vector<Votes>& votes, GroupRank self);

/// Returns the staging in bytes for one read at a time: the size of the largest item, up to the
/// given limit.
std::uint64_t one_read(const StagingNeed& need);

/// Says who reads what for whom, in rounds of at most `room` bytes.
using ShareReads = SharedReads (*)(std::span<const AlikeReaders> classes, std::uint64_t room);

struct LoadSeams {
  /// Judges a difference between requested and stored keys.
  StrictVerdict (*judge_strictness)(Strictness mode, const KeyMismatch& keys) = judge;
  /// Chooses the iteration to load from those that the ranks' trackers name.
  std::optional<Step> (*tracked)(const TrackedSteps& tracked, GroupRank leader) = newest_tracked;
  /// Returns the candidate that `self` chooses, if any.
  std::optional<std::size_t> (*choose_candidate)(const std::vector<Votes>& votes,
                                                 GroupRank self) = first_whole;
  /// Chooses the rank that reads for all.
  LeaderSeams leader;
  MetadataCacheSeams cache;
  /// Returns the size of the read buffer in bytes.
  std::uint64_t (*staging)(const StagingNeed& need) = one_read;
  /// Assigns reads to ranks if each byte is read once per job.
  ShareReads share = shared_reads;
};

}  // namespace reprise
