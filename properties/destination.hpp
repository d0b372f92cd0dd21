#pragma once
// What a refused load left of the memory that it was to fill: the bits from before it, or poison.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/state/state_dict.hpp"
#include "properties/ruling.hpp"
#include "reprise/types.hpp"

namespace reprise {

/// What a load that failed while it read leaves in every tensor that it was to fill.
inline constexpr std::byte kLoadPoison{0xBD};

/// What was looked at of a destination after a refusal.
struct RefusalEvidence {
  Rulings rulings;
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
};

/// The memory that a load is to fill, as it was before.
class Destination {
 public:
  Destination() = default;
  /// Takes the hashes of all pieces, which are in host memory.
  explicit Destination(const StateDict& before);

  /// BIT_MISMATCH for each tensor of `after`, in host memory, of which some piece has neither its
  /// bits from before nor poison alone.
  RefusalEvidence refused(GlobalRank rank, const StateDict& after) const;

 private:
  std::map<std::pair<std::string, Box>, std::uint64_t> pieces_;
};

}  // namespace reprise
