#pragma once
// A set of addresses, kept as ranges that do not touch.

#include <cstdint>
#include <map>

namespace reprise::sim {

struct AddressRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;  ///< past the last byte

  bool empty() const { return begin >= end; }
};

class AddressSet {
 public:
  /// Cheap where the range lies in one that is there.
  void add(AddressRange range);
  bool meets(AddressRange range) const;
  bool covers(AddressRange range) const;
  std::uint64_t bytes() const { return bytes_; }
  void clear();

 private:
  std::map<std::uintptr_t, std::uintptr_t> ranges_;  ///< begin to end
  std::uint64_t bytes_ = 0;
};

}  // namespace reprise::sim
