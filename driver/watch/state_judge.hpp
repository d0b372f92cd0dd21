#pragma once
// Decides where a life continues, and compares what it holds before its first step.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "driver/watch/watch_judgement.hpp"

namespace reprise::driver {

/// The records of the same ranks in the life A, the life that was killed, and the one that resumes.
struct ResumedLife {
  const LifeRecording& uninterrupted;
  const LifeRecording& killed;
  const LifeRecording& resumed;
  const std::set<std::string>& noise;  ///< names that are not judged
  /// Steps that were made before the killed life began: its step 1 is that of life A plus this.
  std::int64_t killed_from = 0;
  std::size_t life = 2;  ///< index of the resumed life
};

/// Returns the step of life A whose state the resumed life holds when it begins, by most names: 0
/// if nothing of a later step came back. Nothing if some rank recorded no state to compare.
std::optional<std::int64_t> continues_from(const ResumedLife& lives);

/// Returns the newest step before the kill after which everything was saved, completely, that was
/// also saved after step `from`; if nothing was saved then, of any save with a tensor.
std::optional<std::int64_t> newest_save(const ResumedLife& lives, std::int64_t from);

/// True if something was saved completely after that step. If a life continues from one where this
/// is false, nobody knows which save it loaded: a thread may have saved the state of an earlier
/// step.
bool saved_at(const ResumedLife& lives, std::int64_t step);

/// True if one of the words names what was saved after step `from`, and not what was saved after
/// step `newest`, so that whoever wrote it wants just that.
bool names_save(const ResumedLife& lives, const std::vector<std::string>& words, std::int64_t from,
                std::int64_t newest);

/// What comparing the first states shows.
struct StateFindings {
  std::vector<WatchFinding> findings;
  /// Findings about random states that were not saved, and about buffers that are right again at
  /// the end: they decide only if the course of the steps differs, too.
  std::vector<WatchFinding> without_effect;
  /// Places in the data and fields of objects: an explanation if something else is wrong.
  std::vector<WatchFinding> explanations;
};

/// Compares what each rank holds before its first step with life A after step `from`. Adds what was
/// compared to `judgement`.
StateFindings compare_states(const ResumedLife& lives, std::int64_t from,
                             WatchJudgement& judgement);

/// Compares what each rank holds at its end with life A.
std::vector<WatchFinding> compare_ends(const ResumedLife& lives, std::int64_t from);

}  // namespace reprise::driver
