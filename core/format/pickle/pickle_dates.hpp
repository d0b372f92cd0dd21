#pragma once
// Judges single arguments of a call as Python would, and those with which a pickle makes objects of
// Python's datetime.

#include <algorithm>
#include <span>
#include <string_view>

#include "core/format/pickle/pickle_calls.hpp"
#include "core/format/pickle/pickle_graph.hpp"

namespace reprise::pickle {

using Nodes = std::span<const NodeId>;

inline Fit when(bool fits) { return fits ? Fit::kFits : Fit::kRefused; }
/// Says kUnread if what decides can't be seen, because another call makes it.
inline Fit unless_made(const Graph& graph, NodeId node, bool fits) {
  return !fits && graph.kind(node) == Kind::kInstance ? Fit::kUnread : when(fits);
}

inline bool is_text(const Graph& graph, NodeId node) { return graph.kind(node) == Kind::kText; }
inline bool is_small_int(const Graph& graph, NodeId node) {
  return graph.kind(node) == Kind::kInteger || graph.kind(node) == Kind::kBool;
}
inline bool is_int(const Graph& graph, NodeId node) {
  return is_small_int(graph, node) || graph.kind(node) == Kind::kBigInteger;
}
inline bool is_number(const Graph& graph, NodeId node) {
  return is_int(graph, node) || graph.kind(node) == Kind::kFloat;
}
inline std::int64_t integer_of(const Graph& graph, NodeId node) {
  return graph.kind(node) == Kind::kBool ? std::int64_t{graph.boolean(node)} : graph.integer(node);
}
inline bool is_call_of(const Graph& graph, NodeId node, std::string_view name) {
  if (graph.kind(node) != Kind::kInstance) return false;
  const NodeId type = graph.instance(node).type;
  return graph.kind(type) == Kind::kName && graph.global(type).name == name;
}

inline bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

Fit of_datetime(const Graph& graph, Nodes items);
Fit of_date(const Graph& graph, Nodes items);
Fit of_time(const Graph& graph, Nodes items);
Fit of_timedelta(const Graph& graph, Nodes items);
Fit of_timezone(const Graph& graph, Nodes items);

}  // namespace reprise::pickle
