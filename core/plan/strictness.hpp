#pragma once
// Says what a load does when the requested keys and the stored keys differ: the strict modes of
// Megatron's dist_checkpointing (StrictHandling), by their names there. Those names alone keep
// Megatron's words for the two sides:
//
//   here            Megatron     a key
//   not stored      unexpected   that the job requests and the checkpoint lacks
//   not requested   missing      that the checkpoint holds and no rank requests

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/load.hpp"

namespace reprise {

/// The two sides, global over all ranks, sorted; keys that a skip list excuses are taken out
/// before.
struct KeyMismatch {
  std::vector<std::string> not_requested;
  std::vector<std::string> not_stored;
};

struct StrictVerdict {
  bool refuse = false;           ///< the load must not go on
  std::vector<std::string> log;  ///< lines for people, one per side
  KeyMismatch returned;          ///< what the caller gets back
  bool drop_not_stored = false;  ///< keys that are not stored are taken out of the request
};

StrictVerdict judge(Strictness mode, const KeyMismatch& keys);

}  // namespace reprise
