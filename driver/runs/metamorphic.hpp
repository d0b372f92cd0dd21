#pragma once
// Relations between two runs: a change of the scenario that must change neither what the job holds
// in the end nor what it stores.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "driver/language/scenario.hpp"

namespace reprise::driver {

struct Relation {
  std::string_view name;
  std::string_view says;
  /// Changes the scenario. Returns false if it has nothing to change.
  bool (*change)(Scenario& scenario);
  /// True if the change leaves the keys of stored tensors as they are, so that the checkpoints can
  /// be compared tensor by tensor.
  bool keeps_keys;
};

/// Returns the relations:
///
///   ranks-renamed   the job's members are other ranks of the world, in another order
///   keys-renamed    the modules' keys have the other form
///   saved-twice     each save is made twice
///   saved-in-two    training before a save is cut into two parts, with a save after the first
///
/// The language has no words for these changes: another tensor or other padding (models are named),
/// another way to elect writers or another number of them (the engine has one rule, and every rank
/// may write).
std::span<const Relation> relations();

}  // namespace reprise::driver
