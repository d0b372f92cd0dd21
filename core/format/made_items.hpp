#pragma once
// Bytes items that no file has: values which lie within the pickle of a file of torch.save, each as
// torch.save would write it alone. Only the pickles are kept; items are written when they are read.

#include <cstdint>
#include <vector>

#include "core/base/bytes.hpp"

namespace reprise {

class MadeItems {
 public:
  /// Adds an item whose data.pkl this is. Returns its range.
  ByteRange add(Bytes pickle);
  /// Returns the length of all items, which lie one after the other.
  std::uint64_t size() const { return size_; }
  /// Fills `out` with the bytes from `offset` on, which must lie within size().
  void read_at(std::uint64_t offset, MutableByteSpan out) const;

 private:
  struct Item {
    std::uint64_t end = 0;
    Bytes pickle;
  };

  std::vector<Item> items_;
  std::uint64_t size_ = 0;
};

}  // namespace reprise
