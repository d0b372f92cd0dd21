#pragma once
// Lists every entry of a value, and changes one.

#include <string>
#include <vector>

#include "reprise/value.hpp"

namespace reprise::driver::test {

/// A leaf of a value. `at` is its position in each container, from the root inwards.
struct Entry {
  std::string path;  ///< such as "['optimizer'][0]['lr']"
  std::vector<std::size_t> at;
};

std::vector<Entry> entries_of(const Value& root);

/// Changes the entry: adds 1 to an integer, flips a bool or a bit of a float, or appends a letter
/// or an item. An entry of any other kind becomes a value of another type.
void corrupt(Value& root, const Entry& entry);

}  // namespace reprise::driver::test
