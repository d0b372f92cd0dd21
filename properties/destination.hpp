#pragma once
// Checks the memory that a refused load was to fill: it has the old bits or poison.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/state/state_dict.hpp"
#include "properties/ruling.hpp"
#include "reprise/types.hpp"

namespace reprise {

/// Byte that a load that fails while reading writes over every tensor that it was to fill.
inline constexpr std::byte kLoadPoison{0xBD};

/// Tensors and elements that were checked after a refusal.
struct RefusalEvidence {
  Rulings rulings;
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
};

/// Hashes of the memory that a load will fill, taken before the load.
class Destination {
 public:
  Destination() = default;
  /// Hashes all pieces, which are in host memory.
  explicit Destination(const StateDict& before);

  /// Reports BIT_MISMATCH for each tensor of `after`, in host memory, with a piece that is neither
  /// unchanged nor all poison.
  RefusalEvidence refused(GlobalRank rank, const StateDict& after) const;

 private:
  std::map<std::pair<std::string, Box>, std::uint64_t> pieces_;
};

}  // namespace reprise
