// Finds what production declares and does not use: headers that no other file includes, and
// functions, types, constants and fields of headers whose names production never uses where it can
// see them.
#pragma once

#include <string>
#include <vector>

#include "tests/layers/layer_rules.hpp"

namespace reprise::layers {

/// Something that is kept although production does not use it.
struct Kept {
  std::string what;    ///< "folder/name.hpp", or "folder/name.hpp: name"
  std::string reason;  ///< who uses it, as an end of "it is kept for ..."
};

/// Checks the headers of the table's folders and of trainers/, but not the public ones: programs
/// outside use those. Each of them must be included by another file of production than its own
/// source. Each function, type, constant and field that it declares must be used in a file of
/// production that includes it, directly or not; a definition is no use. A name that several
/// headers declare may hide one that is not used. What overrides a function, and what a public
/// header names, counts as used. An entry of `kept` that excuses nothing is a finding, too.
std::vector<Finding> check_dead_code(const LayerTable& table, const std::vector<SourceFile>& tree,
                                     const std::vector<Kept>& kept);

}  // namespace reprise::layers
