#pragma once
// Says which program this is, in one line.

#include <string>

namespace reprise::cli {

/// Returns text such as "reprise 0.2.0 (ac690fed8ef1, Release GNU 12.2.0)". A plus sign after the
/// commit means that the tree differed from it.
std::string version_line();

}  // namespace reprise::cli
