#pragma once
// Saves and loads with some decisions replaced, for mutants and engine tests. All other code uses
// save.hpp and load.hpp.

#include "core/engine/load.hpp"
#include "core/engine/save.hpp"
#include "core/seams/load_seams.hpp"
#include "core/seams/save_seams.hpp"

namespace reprise {

/// Same as Save::begin, with seams.
Save begin_save(const Ports& ports, std::shared_ptr<Communicator> group, const StateDict& state,
                SaveSettings options, const SaveSeams& seams);

/// Same as load, with seams.
LoadReport load(const Ports& ports, Communicator& group, const LoadSettings& options,
                const Ask& ask, const LoadSeams& seams);
LoadReport load(const Ports& ports, Communicator& group, StateDict& into,
                const LoadSettings& options, const LoadSeams& seams);

/// Same as read_common, with seams.
std::optional<Value> read_common(Store& store, Communicator& group, const std::string& path,
                                 const LeaderSeams& seams);

}  // namespace reprise
