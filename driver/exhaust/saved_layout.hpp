#pragma once
// Saves the subject under one layout, and keeps what was saved.

#include <memory>

#include "core/format/metadata.hpp"
#include "core/load/load.hpp"
#include "driver/exhaust/subject.hpp"
#include "properties/global_state.hpp"
#include "sim/mutants/mutants.hpp"
#include "sim/world/sim_store.hpp"
#include "sim/world/world.hpp"

namespace reprise::driver {

/// A checkpoint in its own store. Several threads may read it at the same time.
struct SavedLayout {
  sim::Layout layout;
  std::unique_ptr<sim::SimStore> store;
  /// The checkpoint's metadata as the engine read it back, parsed once for all loads.
  KnownMetadata metadata;
  GlobalState model;   ///< the whole training state, in model space, at the time of the save
  GlobalState stored;  ///< the objects and the common state as the checkpoint must hold them
  std::uint64_t elements = 0;  ///< elements of all tensors of `model`
  std::uint64_t bytes = 0;     ///< bytes that the ranks wrote
};

/// Trains the subject under the layout and saves it through the engine. Throws the error of the
/// lowest failed rank, or an internal error if the states of the ranks contradict each other.
SavedLayout save_under(const sim::Layout& layout, const Subject& subject,
                       const sim::Policies& policies);

/// Throws the error of the lowest rank that did not return normally.
void require_returned(const sim::RunResult& run);

}  // namespace reprise::driver
