#pragma once
// Checks the memory that a refused load would have filled: each piece has to be either unchanged or
// filled with poison.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/state/state_dict.hpp"
#include "properties/finding.hpp"
#include "reprise/types.hpp"

namespace reprise {

/// If a load fails while reading, it fills every requested tensor with this byte.
inline constexpr std::byte kLoadPoison{0xBD};

/// The findings after a refusal, and the numbers of tensors and elements that were checked.
struct RefusalEvidence {
  judged::Findings findings;
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
};

/// Hashes of the memory that a load will fill, computed before the load.
class Destination {
 public:
  Destination() = default;
  /// Computes the hashes of all pieces, which must be in host memory.
  explicit Destination(const StateDict& before);

  /// Reports BIT_MISMATCH for each tensor of `after` with a piece that is neither unchanged nor
  /// filled with poison. The tensors must be in host memory.
  RefusalEvidence refused(GlobalRank rank, const StateDict& after) const;

 private:
  std::map<std::pair<std::string, Box>, std::uint64_t> pieces_;
};

}  // namespace reprise
