#pragma once
// Lists every entry of a value, and changes one.

#include <string>
#include <vector>

#include "reprise/value.hpp"

namespace reprise::driver::test {

/// A leaf entry: its positions, from the root inwards.
struct Entry {
  std::string path;  ///< "['optimizer'][0]['lr']"
  std::vector<std::size_t> at;
};

std::vector<Entry> entries_of(const Value& root);

/// Changes it to another value of its type: one more, a flipped bit, an added letter or item.
void corrupt(Value& root, const Entry& entry);

}  // namespace reprise::driver::test
