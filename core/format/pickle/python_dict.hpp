#pragma once
// Builds a dict with Python's rules for insertion. If a key is set again, its position and its
// first form stay, and the value is replaced.

#include <map>
#include <string>

#include "reprise/value.hpp"

namespace reprise {

/// Compares keys as Python does if they are None, numbers within int64 (1, 1.0 and True are one
/// key), larger integers, text, bytes, names, or tuples and frozensets of these. All other keys
/// count as distinct: Python accepts none of them from a checkpoint, or cannot compare them before
/// they are constructed. O(log n) per entry and O(1) per byte of a key, for any keys.
class PythonDict {
 public:
  void reserve(std::size_t entries) { entries_.reserve(entries); }
  void set(Value key, Value value);
  /// Returns the dict. May be called only once.
  Dict take() { return std::move(entries_); }

 private:
  Dict entries_;
  /// Positions in `entries_`. Equal keys have the same text here.
  std::map<std::string, std::size_t> places_;
};

}  // namespace reprise
