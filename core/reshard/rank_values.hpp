#pragma once
// Settles values that each rank saved for itself when a checkpoint is rewritten: a single
// `.metadata` has only one value per key.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "reprise/device.hpp"

namespace reprise {

enum class PerRank : std::uint8_t {
  kKeep,   ///< each rank keeps its own; requires the same number of ranks
  kFirst,  ///< all ranks get the first rank's value
  kDrop,   ///< values that differ between ranks are dropped
};

struct RankChoice {
  std::optional<PerRank> per_rank = {};  ///< nothing: kKeep if the number of ranks stays the same
  std::int64_t ranks = 0;                ///< ranks of the new checkpoint; 0: as many as before
};

/// The metadata to write, and what was left out of it.
struct SettledRanks {
  Metadata metadata;
  std::vector<std::string> dropped = {};  ///< keys that were left out
  /// Keys taken from the first rank although ranks had different values or some had none.
  std::vector<std::string> of_first = {};
};

/// Returns the metadata unchanged if possible. Otherwise merges it: copies with equal bytes (found
/// by reading them) become one; for the others `choice` decides. Throws USAGE, naming one, if
/// `choice` does not say.
SettledRanks settle_ranks(Checkpoint& checkpoint, const RankChoice& choice, Device& device);

}  // namespace reprise
