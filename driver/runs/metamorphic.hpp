#pragma once
// Relations between two runs: a change of the scenario, or of a decision of the engine, that must
// change neither what the job holds in the end nor what it stores.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "driver/language/scenario.hpp"
#include "sim/mutants/mutants.hpp"

namespace reprise::driver {

struct Relation {
  std::string_view name;
  std::string_view says;
  /// Changes the scenario. Returns false if there is nothing that the relation could change.
  bool (*change)(Scenario& scenario);
  /// True if the change leaves the keys of stored tensors as they are, so that the checkpoints can
  /// be compared tensor by tensor.
  bool keeps_keys;
  /// Replaces decisions of the changed run by others that are as right; null if there are none.
  void (*decide)(sim::Policies& policies) = nullptr;
  std::string_view adds = {};  ///< key of a tensor that only the changed run stores
};

/// Returns the relations:
///
///   ranks-renamed    the job's members are other ranks of the world, in another order
///   keys-renamed     the modules' keys have the other form
///   saved-twice      each save is made twice
///   saved-in-two     training before a save is cut into two parts, with a save after the first
///   tensor-added     each checkpoint also has a tensor that belongs to no module
///   other-writers    of the ranks that hold a box, the last one writes it
///   fewer-writers    of the ranks that hold a box, the one that writes most already writes it
std::span<const Relation> relations();

}  // namespace reprise::driver
