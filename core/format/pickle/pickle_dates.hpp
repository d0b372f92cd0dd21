#pragma once
// Judges the arguments with which a pickle makes objects of Python's datetime.

#include "core/format/pickle/pickle_argument.hpp"

namespace reprise::pickle {

Fit of_datetime(const Graph& graph, Nodes items);
Fit of_date(const Graph& graph, Nodes items);
Fit of_time(const Graph& graph, Nodes items);
Fit of_timedelta(const Graph& graph, Nodes items);
Fit of_timezone(const Graph& graph, Nodes items);

}  // namespace reprise::pickle
