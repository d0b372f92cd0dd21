#pragma once
// Saves and loads of which some decisions are replaced: for mutants and for the tests of the
// engine. Everybody else uses save.hpp and load.hpp.

#include "core/engine/load.hpp"
#include "core/engine/save.hpp"
#include "core/seams/load_seams.hpp"
#include "core/seams/save_seams.hpp"

namespace reprise {

/// As Save::begin.
Save begin_save(const Ports& ports, std::shared_ptr<Communicator> group, const StateDict& state,
                SaveSettings options, const SaveSeams& seams);

/// As load.
LoadReport load(const Ports& ports, Communicator& group, const LoadSettings& options,
                const Ask& ask, const LoadSeams& seams);
LoadReport load(const Ports& ports, Communicator& group, StateDict& into,
                const LoadSettings& options, const LoadSeams& seams);

/// As read_common.
std::optional<Value> read_common(Store& store, Communicator& group, const std::string& path,
                                 const LeaderSeams& seams);

}  // namespace reprise
