#pragma once
// Defines where the Python package is in the tree and in the tarball.

#include <array>
#include <string_view>

namespace reprise::driver {

/// Folders of the package `reprise`, seen from the folder of the program: tarball, tree.
inline constexpr std::array<std::string_view, 2> kPackageFolders = {"../python/reprise",
                                                                    "../../python/reprise"};

}  // namespace reprise::driver
