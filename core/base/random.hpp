#pragma once
// Defines the project's only random generator. It is counter-based and uses integers only. Streams
// are derived by name. The n-th number of a stream depends only on the seed, the names and n, so
// any element can be generated without the others.

#include <cstdint>
#include <string_view>

#include "core/base/hash.hpp"

namespace reprise {

__extension__ using Wide = unsigned __int128;

class Stream {
 public:
  constexpr explicit Stream(std::uint64_t seed) : key_(mix64(seed)) {}

  /// Returns an independent stream that is identified by a name or an index.
  Stream split(std::string_view name) const { return Stream(mix64(key_, hash_of(name)), 0); }
  constexpr Stream split(std::uint64_t index) const { return Stream(mix64(key_, ~index), 0); }

  /// Returns the n-th number of the stream without advancing it.
  REPRISE_HD constexpr std::uint64_t at(std::uint64_t n) const { return mix64(key_, n); }
  constexpr std::uint64_t next() { return at(counter_++); }
  /// Returns a uniform number in [0, bound), computed by multiply-shift; `bound` must be positive.
  constexpr std::uint64_t below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * static_cast<Wide>(bound)) >>
                                      64U);
  }

 private:
  constexpr Stream(std::uint64_t key, std::uint64_t counter) : key_(key), counter_(counter) {}

  std::uint64_t key_ = 0;
  std::uint64_t counter_ = 0;
};

}  // namespace reprise
