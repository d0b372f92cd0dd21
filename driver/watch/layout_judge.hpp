#pragma once
// Compares a life that resumes under another layout with the one that nothing interrupted: what all
// ranks hold together, by digests that add up, and which rows of data a step takes.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "driver/watch/state_judge.hpp"

namespace reprise::driver {

/// The value that the ranks of a life hold together under one name.
struct WholeValue {
  std::string value;  ///< as of a single process; empty if it is not known
  std::string why;    ///< why it is not known
  /// True if ranks have the same part of a tensor with different content.
  bool copies_differ = false;
};
using WholeValues = std::map<std::string, WholeValue>;

/// Returns what the ranks hold together when a forward begins after that step. A tensor's value is
/// the sum of the digests of its parts, each part counted once.
WholeValues wholes_at(const LifeRecording& life, std::int64_t step);

/// Returns the step of life A whose state the resumed life holds when it begins; 0 if nothing of a
/// later step came back. Nothing if no whole tensor can be compared.
std::optional<std::int64_t> continues_whole_from(const ResumedLife& lives);

/// Compares what is held before the first step, and the rows of data of each step. Adds what was
/// compared to `judgement`, and what can't be compared under another layout.
std::vector<WatchFinding> compare_layouts(const ResumedLife& lives, std::int64_t from,
                                          WatchJudgement& judgement);

}  // namespace reprise::driver
