#pragma once
// Judges the arguments with which a pickle calls a listed name, and the states that it sets: would
// Python accept them? Each shape in the closed list (Args, BuildState) has one rule here.

#include "core/format/pickle/pickle_graph.hpp"
#include "core/format/pickle/pickle_names.hpp"

namespace reprise::pickle {

enum class Fit : std::uint8_t {
  kFits,
  kRefused,  ///< Python raises an error: the pickle is damaged
  kUnread,   ///< Python may accept it; it is not interpreted
};

/// Judges the arguments of a call. `args` is a tuple.
Fit fit_of(const Graph& graph, Args shape, const NameRule& rule, NodeId args);
/// Judges the state that BUILD sets on an instance of the rule's class, made with these arguments.
Fit fit_of(const Graph& graph, const NameRule& rule, NodeId args, NodeId state);

/// True if Python can hash an instance of the rule's class that has this state (kNoNode if none).
bool hashes(const Graph& graph, const NameRule& rule, NodeId state);

}  // namespace reprise::pickle
