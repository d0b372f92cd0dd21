#pragma once
// Says how a wrong tensor was cut over the ranks that saved it, and how it is cut over the ranks
// that load it. Pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "driver/language/scenario.hpp"
#include "driver/record/record.hpp"
#include "reports/failure.hpp"

namespace reprise::driver {

/// A tensor that a judge found wrong.
struct WrongTensor {
  std::size_t life = 0;  ///< life in which it was found
  bool at_save = false;  ///< true if it was found in a save of that life
  std::string key = {};
  std::optional<std::int32_t> rank = {};
  std::vector<std::int64_t> index = {};  ///< the wrong element; empty if it is not known
};

/// Returns the placement of the tensor in the life that saved it and in the one that loaded it, or
/// is planned to load it next. Shows the boxes that the ranks passed to the save, if the records
/// have them; they are wrong if the defect is in them. All other boxes are those of a job without
/// defects with the life's layout. Vocabularies are shown without their padding. Returns nothing if
/// no life's ranks hold a tensor with this key.
std::optional<reports::TensorPlacement> placement_of(const Scenario& scenario,
                                                     std::span<const LifeRecord> lives,
                                                     const WrongTensor& wrong);

}  // namespace reprise::driver
