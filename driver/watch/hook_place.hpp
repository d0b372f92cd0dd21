#pragma once
// Finds the hook of `reprise watch`, which is part of the Python package.

#include <string>

namespace reprise::driver {

/// Returns the folder to put first into PYTHONPATH, <package>/watch/site. `package` is the folder
/// of the Python package `reprise`, or the folder above it; if empty, looks beside the program,
/// whose path is `executable`: where the tree, the tarball and an environment of Python have it.
/// Throws USAGE if it is not there.
std::string find_hook(const std::string& executable, const std::string& package);

}  // namespace reprise::driver
