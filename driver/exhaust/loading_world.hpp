#pragma once
// Loads many checkpoints under one layout.

#include <cstddef>
#include <functional>
#include <span>

#include "driver/exhaust/pair_tally.hpp"

namespace reprise::driver {

/// Called when the load of checkpoint number `saved` has ended.
using PairEnded = std::function<void(std::size_t saved, const PairResult& result)>;

/// Loads each checkpoint into a new job of the layout, and compares the job's state with the saved
/// state. The jobs run one after another in one simulated world. After a refusal or a failure, the
/// next job runs in a new world. Calls `stop` before each load. If `stop` returns true, no further
/// load begins.
void load_under(const sim::Layout& layout, std::span<const SavedLayout> saved,
                const Subject& subject, const sim::Policies& policies, const PairEnded& ended,
                const std::function<bool()>& stop);

}  // namespace reprise::driver
