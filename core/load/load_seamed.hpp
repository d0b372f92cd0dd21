#pragma once
// Loads with some decisions replaced, for mutants and engine tests. All other code uses load.hpp.

#include <optional>
#include <string>

#include "core/load/load.hpp"
#include "core/seams/load_seams.hpp"

namespace reprise {

/// Does the same as load, with seams.
LoadReport load(const Ports& ports, Communicator& group, const LoadSettings& options,
                const Ask& ask, const LoadSeams& seams);
LoadReport load(const Ports& ports, Communicator& group, StateDict& into,
                const LoadSettings& options, const LoadSeams& seams);

/// Does the same as read_common, with seams.
std::optional<Value> read_common(Store& store, Communicator& group, const std::string& path,
                                 const LeaderSeams& seams);

}  // namespace reprise
