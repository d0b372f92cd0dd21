#pragma once
// Decides what a load does if requested and stored keys differ: the strict modes of Megatron's
// dist_checkpointing (StrictHandling), under the names they have there. Only those names use
// Megatron's words for the two sides:
//
//   here            Megatron     meaning
//   not stored      unexpected   the job requests the key, but the checkpoint lacks it
//   not requested   missing      the checkpoint has the key, but no rank requests it

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/load.hpp"

namespace reprise {

/// Both sides over all ranks, sorted; keys excused by a skip list have been
/// removed.
struct KeyMismatch {
  std::vector<std::string> not_requested;
  std::vector<std::string> not_stored;
};

struct StrictVerdict {
  bool refuse = false;           ///< true if the load must not continue
  std::vector<std::string> log;  ///< lines for people, one per side
  KeyMismatch returned;          ///< mismatch to return to the caller
  bool drop_not_stored = false;  ///< remove keys that are not stored from the request
};

StrictVerdict judge(Strictness mode, const KeyMismatch& keys);

}  // namespace reprise
