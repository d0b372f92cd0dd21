#pragma once
// What becomes of values that each rank saved for itself when a checkpoint is written anew: one
// `.metadata` has one value for each key.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/checkpoint.hpp"
#include "reprise/device.hpp"

namespace reprise {

enum class PerRank : std::uint8_t {
  kKeep,   ///< each rank keeps its own, which takes as many ranks as there were
  kFirst,  ///< all get the first rank's
  kDrop,   ///< what differs between ranks is left out
};

struct RankChoice {
  std::optional<PerRank> per_rank = {};  ///< nothing: kept if the number of ranks is the same
  std::int64_t ranks = 0;                ///< that the new checkpoint is for; 0: as many as before
};

/// What is to be written, and what is left out.
struct SettledRanks {
  Metadata metadata;
  std::vector<std::string> dropped = {};  ///< keys
  /// Keys of which ranks had different values, or not all had one, and the first rank's is taken.
  std::vector<std::string> of_first = {};
};

/// The metadata as it is where it need not change. Otherwise one metadata for all: copies that hold
/// the same bytes become one, which is found out by reading them; of others `choice` says what is
/// taken. USAGE, naming one, if it does not say.
SettledRanks settle_ranks(Checkpoint& checkpoint, const RankChoice& choice, Device& device);

}  // namespace reprise
