#pragma once
// The decisions of the job that concern its checkpoints. A default-constructed policy is right; a
// mutant swaps a function.

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "core/geometry/placement.hpp"
#include "core/ports/fabric.hpp"
#include "core/state/state_dict.hpp"
#include "sim/job/parameter.hpp"

namespace reprise::sim {

/// What the refresh after a load works on; outlives its steps.
struct Loaded {
  std::span<LocalParameter> parameters;
  Communicator& dp;
  Communicator& world;
};

struct RefreshStep {
  std::string_view name;
  std::function<void()> run;
};

/// From what was loaded to what the next forward pass uses:
///
///   check_masters    bf16(master) is the stored weight, on every rank; else STALE_DERIVED on all
///   install_own      this rank's share into the compute copy
///   gather           the other shares, over dp
std::vector<RefreshStep> refresh_protocol(const Loaded& loaded);

/// Everything: the right inventory.
StateDict whole_state(StateDict state);

/// Which copy this member holds of what is placed so; 0 is the main copy.
std::int32_t replica_of(const Placement& placement, const Mesh& mesh, GroupRank member);

struct JobPolicy {
  /// How a placement cuts dimensions; must be the rule by which the plan describes.
  ChunkRule slice = ceil_chunk;
  std::int32_t (*replica)(const Placement&, const Mesh&, GroupRank) = replica_of;
  /// What of the whole state is handed to a save, and what of it is requested by a load.
  StateDict (*saved)(StateDict) = whole_state;
  StateDict (*requested)(StateDict) = whole_state;
  std::vector<RefreshStep> (*refresh)(const Loaded&) = refresh_protocol;
};

}  // namespace reprise::sim
