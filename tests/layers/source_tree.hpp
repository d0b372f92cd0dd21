// Reads the tree that the tests check.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "tests/layers/layer_rules.hpp"

namespace reprise::layers {

/// The texts of all files of the tree, but for builds and files without text.
const std::vector<SourceFile>& tree();
/// layers.txt.
const ParsedTable& parsed();
/// Fails with all findings in its message, if there are any.
testing::AssertionResult none(const std::vector<Finding>& findings);

}  // namespace reprise::layers
