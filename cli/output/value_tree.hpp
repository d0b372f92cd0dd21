#pragma once
// Prints a value as an indented tree, one scalar per line, with long lists and texts shortened.

#include <ostream>

#include "reprise/value.hpp"

namespace reprise::cli {

/// Prints a tree. Values nested deeper than `depth_max` are printed on one line.
void print_tree(std::ostream& out, const Value& value, int indent, int depth_max = 8);

}  // namespace reprise::cli
