#pragma once
// Counts what a diff found: by kind of difference, and by groups of keys. Pure functions from the
// report to counts.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/diff/diff.hpp"

namespace reprise {

/// The kind of item that a row of the report describes.
enum class DiffSubject : std::uint8_t { kTensors, kObjects, kCommonState, kFiles };
inline constexpr std::size_t kDiffSubjects = 4;
/// Returns "tensors", "objects", "common state" or "files".
std::string_view name_of(DiffSubject subject);

struct DiffCounts {
  /// Rows of the report by verdict, then by DiffSubject; verdicts without rows are left out.
  std::map<DiffVerdict, std::array<std::uint64_t, kDiffSubjects>> rows;

  std::uint64_t count(DiffVerdict verdict, DiffSubject subject) const;
};
DiffCounts counts_of(const DiffReport& report);

/// Returns the key with a '*' in place of each number that stands alone: "layers.*.linear_fc1" for
/// "layers.12.linear_fc1", and "rng_state/shard_*.*_*.*" for "rng_state/shard_0.1_2.4". Digits next
/// to a letter belong to a name.
std::string without_numbers(std::string_view key);

/// The tensors, objects and files whose keys are equal without numbers.
struct KeyGroup {
  std::string pattern;
  std::uint64_t keys = 0;
  std::map<DiffVerdict, std::uint64_t> verdicts;
  Comparison comparison;  ///< of all tensors of the group; `first` means nothing here
  /// Covers the tensors whose elements differ; empty if there are none.
  std::optional<ElementChange> change = {};

  bool all_same() const;
};

/// Returns the share of the compared elements that differ, from 0 to 1; 0 if none were compared.
double share_that_differs(const Comparison& comparison);

/// True if the first changed more: by ElementChange::relative(), where NaN is the most. What was
/// not compared comes last.
bool changed_more(const std::optional<ElementChange>& one,
                  const std::optional<ElementChange>& other);
/// Returns the groups in natural order. Differences within the common state count as one group.
std::vector<KeyGroup> groups_of(const DiffReport& report);

/// A prefix that the keys of one side have and the keys of the other side lack.
struct PrefixHint {
  enum class Side : std::uint8_t { kLeft, kRight };
  Side longer = Side::kLeft;  ///< the side whose keys have the prefix
  std::string prefix;         ///< ends in '.' or '/'
  std::uint64_t keys = 0;     ///< keys that are the same but for the prefix
};
/// Returns a prefix that would match at least two keys, and at least half of the keys that only one
/// side has (counted on the side with fewer of them). Returns nothing if there is none.
std::optional<PrefixHint> prefix_hint(const DiffReport& report);

}  // namespace reprise
