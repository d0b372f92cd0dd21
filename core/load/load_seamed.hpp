#pragma once
// Loads with some decisions replaced, for mutants and engine tests. All other code uses load.hpp.

#include <optional>
#include <string>

#include "core/load/load.hpp"
#include "core/seams/load_seams.hpp"

namespace reprise {

/// Loads like load() in load.hpp, but makes the decisions in `seams` as `seams` says.
LoadReport load(const Ports& ports, Communicator& group, const LoadSettings& options,
                const Ask& ask, const LoadSeams& seams);
LoadReport load(const Ports& ports, Communicator& group, StateDict& into,
                const LoadSettings& options, const LoadSeams& seams);

/// Reads like read_common() in load.hpp, but chooses the leader as `seams` says.
std::optional<Value> read_common(Store& store, Communicator& group, const std::string& path,
                                 const LeaderSeams& seams);

}  // namespace reprise
