#pragma once
// Lists the entries of a nested value, and changes single entries.

#include <string>
#include <vector>

#include "reprise/value.hpp"

namespace reprise::driver::test {

/// A leaf of a nested value. `at` lists the indices that lead to the leaf, the outermost
/// container's index first.
struct Entry {
  std::string path;  ///< such as "['optimizer'][0]['lr']"
  std::vector<std::size_t> at;
};

std::vector<Entry> entries_of(const Value& root);

/// Changes the entry: adds 1 to an integer, flips a bool or one bit of a float, or appends a letter
/// or an item. Replaces an entry of any other type by a value of another type.
void corrupt(Value& root, const Entry& entry);

}  // namespace reprise::driver::test
