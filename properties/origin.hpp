#pragma once
// Whose value is this? A wrong element is looked for, with its neighbours, in the state that was
// saved. Narrow types repeat themselves: then the answer says that it is ambiguous.

#include <string>

#include "properties/global_state.hpp"
#include "properties/ruling.hpp"

namespace reprise {

struct Origin {
  Defect defect = Defect::kBitMismatch;
  std::string text;
};

/// `run` are the loaded elements from `index` on, as far as they stand side by side; `key` and
/// `index` say where they should have come from.
Origin origin_of(const GlobalState& saved, const std::string& key, const Dims& index, DType dtype,
                 ByteSpan run);

}  // namespace reprise
