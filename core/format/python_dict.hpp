#pragma once
// A dict as Python fills it: a key that is set again keeps its place and its first form, and takes
// the last value.

#include <map>
#include <string>

#include "reprise/value.hpp"

namespace reprise {

/// Keys are equal as in Python where they are None, numbers within int64 (1, 1.0 and True are one
/// key), larger integers, text, bytes, names, or tuples and frozensets of these. All others are
/// kept apart: Python takes none of them from a checkpoint, or cannot say what they equal before it
/// has made them. O(log n) per entry and O(1) per byte of a key, whatever the keys are.
class PythonDict {
 public:
  void reserve(std::size_t entries) { entries_.reserve(entries); }
  void set(Value key, Value value);
  /// Once.
  Dict take() { return std::move(entries_); }

 private:
  Dict entries_;
  std::map<std::string, std::size_t> places_;  ///< in `entries_`, by what makes keys equal
};

}  // namespace reprise
