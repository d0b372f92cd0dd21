#pragma once
// Decides what a load does if requested and stored keys differ. The choices are the strict modes of
// Megatron's dist_checkpointing (StrictHandling), under the same names. Megatron has other words
// for the two kinds of difference. Here, they appear only in the names of the modes:
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

/// Keys that the job requests but the checkpoint lacks, and keys that the checkpoint has but no
/// rank requests. Collected over all ranks and sorted. Excused keys are left out.
struct KeyMismatch {
  std::vector<std::string> not_requested;
  std::vector<std::string> not_stored;
};

struct StrictVerdict {
  bool refuse = false;           ///< true if the load must not continue
  std::vector<std::string> log;  ///< lines for the operator; at most one per kind of difference
  KeyMismatch returned;          ///< the mismatch that the load returns to its caller
  /// True if keys that are not stored must be removed from the request.
  bool drop_not_stored = false;
};

StrictVerdict judge(Strictness mode, const KeyMismatch& keys);

}  // namespace reprise
