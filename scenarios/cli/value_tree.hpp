#pragma once
// A value as an indented tree, one scalar a line, long lists and texts shortened.

#include <ostream>

#include "reprise/value.hpp"

namespace reprise::cli {

/// Nested deeper than `depth_max`, a value is printed on one line.
void print_tree(std::ostream& out, const Value& value, int indent, int depth_max = 8);

}  // namespace reprise::cli
