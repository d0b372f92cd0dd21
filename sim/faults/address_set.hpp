#pragma once
// A set of addresses, kept as ranges that do not touch each other.

#include <cstdint>
#include <map>

namespace reprise::sim {

struct AddressRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;  ///< exclusive

  bool empty() const { return begin >= end; }
};

class AddressSet {
 public:
  /// Adds the range. This is cheap if an existing range contains it.
  void add(AddressRange range);
  bool meets(AddressRange range) const;
  bool covers(AddressRange range) const;
  std::uint64_t bytes() const { return bytes_; }
  void clear();

 private:
  std::map<std::uintptr_t, std::uintptr_t> ranges_;  ///< maps each range's begin to its end
  std::uint64_t bytes_ = 0;
};

}  // namespace reprise::sim
