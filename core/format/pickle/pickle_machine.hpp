#pragma once
// Runs a pickle's opcodes on a stack and builds a graph. Calls no function of the pickle: REDUCE,
// NEWOBJ and BUILD only record the call, and only if the rule for the called name allows it.

#include <string>
#include <vector>

#include "core/format/pickle/pickle_graph.hpp"
#include "core/format/pickle/pickle_names.hpp"
#include "core/format/pickle/pickle_reader.hpp"
#include "reprise/error.hpp"

namespace reprise::pickle {

struct Reading {
  Graph graph;
  NodeId root = kNoNode;
  std::size_t end = 0;  ///< position after the opcode STOP
  bool opaque = false;  ///< can be true only for Grammar::kBytesItem
  std::string reason;
  std::vector<std::string> unlisted_names;  ///< sorted and unique
};

/// Runs the pickle up to its STOP and ignores the bytes after it. Time and memory are linear in the
/// pickle's length. Throws the same errors as decode_value. The graph points into `input`, which
/// must outlive it.
Reading read_graph(ByteSpan input, Grammar grammar, const PickleSource& where);

/// Returns an error at a position of the pickle.
Error error_at(const PickleSource& where, std::size_t position, Code code, std::string message);

}  // namespace reprise::pickle
