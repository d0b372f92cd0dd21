#pragma once
// Decides which values a rewritten checkpoint keeps if several ranks saved separate values under
// the same name. If all ranks share one `.metadata` in the new checkpoint, that file can hold only
// one value per key.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "reprise/device.hpp"

namespace reprise {

enum class PerRank : std::uint8_t {
  kKeep,   ///< each rank keeps its value; the number of ranks must not change
  kFirst,  ///< all ranks get the first rank's value
  kDrop,   ///< values that differ between ranks are dropped
};

struct RankChoice {
  /// If this is not set and the number of ranks stays the same, each rank keeps its value. If it is
  /// not set and the number changes, values that differ between ranks are refused.
  std::optional<PerRank> per_rank = {};
  std::int64_t ranks = 0;  ///< number of ranks of the new checkpoint; 0 means as many as before
  bool one_metadata =
      false;  ///< true if no rank may have metadata of its own, as if `ranks` changed
};

/// The metadata to write, and the keys under which values were lost.
struct ChosenValues {
  Metadata metadata;
  std::vector<std::string> dropped = {};  ///< keys that were left out
  /// Keys for which only the first rank's value was kept, although other ranks had different values
  /// or none.
  std::vector<std::string> of_first = {};
};

/// Returns the metadata unchanged if all ranks already share it, or if each rank keeps its value.
/// Otherwise reads the bytes of the ranks' items, merges equal copies into one item, and handles
/// differing copies as `choice` requests. Throws USAGE with the key if copies differ and
/// `choice.per_rank` is empty.
ChosenValues choose_values(Checkpoint& checkpoint, const RankChoice& choice, Device& device);

/// Returns metadata in which equal copies of several ranks are one item with its plain key. Reads
/// the bytes of these copies. Copies that differ keep their keys, such as "rng@rank0", all of them.
Metadata with_equal_copies_merged(Checkpoint& checkpoint, Device& device);

}  // namespace reprise
