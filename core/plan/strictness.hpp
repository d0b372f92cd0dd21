#pragma once
// What happens when the requested keys and the stored keys are not the same: the strict modes of
// Megatron's dist_checkpointing (StrictHandling), by their names there.
//
//   missing    in the checkpoint, not requested
//   unexpected requested, not in the checkpoint

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

enum class Strictness {
  kAssumeOkUnexpected,  ///< "assume_ok_unexpected": no check here; an absent tensor fails when it
                        ///< is read
  kLogUnexpected,
  kLogAll,
  kRaiseUnexpected,
  kRaiseAll,
  kReturnUnexpected,
  kReturnAll,
  kIgnoreAll,
};

std::string_view name_of(Strictness mode);
std::optional<Strictness> strictness_named(std::string_view name);

/// The two sides, global over all ranks, sorted; keys that a skip list excuses are taken out
/// before.
struct KeyMismatch {
  std::vector<std::string> missing;
  std::vector<std::string> unexpected;
};

struct StrictVerdict {
  bool refuse = false;           ///< the load must not go on
  std::vector<std::string> log;  ///< lines for people, one per side
  KeyMismatch returned;          ///< what the caller gets back
  bool drop_unexpected = false;  ///< requested keys that are absent are taken out of the request
};

StrictVerdict judge(Strictness mode, const KeyMismatch& keys);

}  // namespace reprise
