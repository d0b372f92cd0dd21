#pragma once
// Variants of the functions in load.hpp in which some decisions are replaced, for mutants and
// engine tests. All other code uses load.hpp.

#include <optional>
#include <string>

#include "core/load/load.hpp"
#include "core/seams/load_seams.hpp"

namespace reprise {

/// The same as load() in load.hpp, except that `seams` provides the functions that make the
/// decisions.
LoadReport load(const Ports& ports, Communicator& group, const LoadSettings& options,
                const Ask& ask, const LoadSeams& seams);
LoadReport load(const Ports& ports, Communicator& group, StateDict& into,
                const LoadSettings& options, const LoadSeams& seams);

/// The same as read_common() in load.hpp, except that `seams` chooses the leader.
std::optional<Value> read_common(Store& store, Communicator& group, const std::string& path,
                                 const LeaderSeams& seams, const StepNames& names = {});

}  // namespace reprise
