#pragma once
// A judge's finding: a code, a message, and where the problem is.

#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "properties/ruling_code.hpp"
#include "reprise/error.hpp"

namespace reprise {

struct Ruling {
  RulingCode code = judged::kBitMismatch;
  std::string key;
  std::string message;
  std::optional<GlobalRank> rank;

  /// Prints "WRONG_OWNER: <message> [rank 0, key ...]".
  friend std::ostream& operator<<(std::ostream& out, const Ruling& ruling);
};

using Rulings = std::vector<Ruling>;

}  // namespace reprise
