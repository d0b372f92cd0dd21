#pragma once
// Finds texts that a pickle already contains, by their content.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"

namespace reprise::pickle {

/// Memo indices of texts that were written to a pickle. Does not keep the texts themselves but
/// where they are in the pickle: each call passes the bytes written so far. A text that meets many
/// others in the table goes into a sorted map, because a hostile state can hold many texts with
/// equal hashes: O(log n) for any texts, O(1) for usual ones.
class TextMemo {
 public:
  std::optional<std::uint32_t> find(std::string_view text, const Bytes& out) const;
  /// Adds a text that find() does not find, and whose bytes are the last of `out`.
  void add(std::string_view text, std::uint32_t index, const Bytes& out);

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::uint64_t begin = 0;  ///< position in the pickle
    std::uint32_t size = 0;
    std::uint32_t index = kFree;
  };
  static constexpr std::uint32_t kFree = 0xffffffff;

  bool put(const Slot& slot);
  void grow(const Bytes& out);
  void put_or_sort(const Slot& slot, const Bytes& out);

  std::vector<Slot> slots_;  ///< a power of two
  std::size_t count_ = 0;
  std::map<std::string, std::uint32_t, std::less<>> sorted_;  ///< texts without a slot
};

}  // namespace reprise::pickle
