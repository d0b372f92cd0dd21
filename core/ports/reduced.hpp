#pragma once
// Reduces two numbers as every fabric does, so that ranks get the same from each.

#include <algorithm>
#include <cstdint>

#include "reprise/fabric.hpp"

namespace reprise {

/// A sum that does not fit wraps around.
inline std::int64_t reduced(Reduce how, std::int64_t a, std::int64_t b) {
  switch (how) {
    case Reduce::kMin:
      return std::min(a, b);
    case Reduce::kMax:
      return std::max(a, b);
    case Reduce::kSum:
      break;
  }
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

}  // namespace reprise
