#pragma once
// Builds a dict by Python's rules for insertion. If an equal key is set again, for example 1.0
// after 1, the dict keeps the first key (1) at its position and replaces only the value.

#include <map>
#include <string>

#include "reprise/value.hpp"

namespace reprise {

/// Compares keys as Python does if they are None, numbers within int64 (1, 1.0 and True are one
/// key), larger integers, text, bytes, names, or tuples and frozensets of these. Treats all other
/// keys as distinct. Python either refuses such keys or must construct objects to compare them, and
/// this program constructs none. O(log n) per entry and O(1) per byte of a key, for any keys.
class PythonDict {
 public:
  void reserve(std::size_t entries) { entries_.reserve(entries); }
  void set(Value key, Value value);
  /// Returns the dict. May be called only once.
  Dict take() { return std::move(entries_); }

 private:
  Dict entries_;
  /// Maps the text that identifies a key to the position of its entry in `entries_`.
  std::map<std::string, std::size_t> places_;
};

}  // namespace reprise
