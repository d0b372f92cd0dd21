#pragma once
// Derives the input of the next life from what earlier lives left behind.

#include "driver/language/scenario.hpp"
#include "driver/record/history.hpp"
#include "driver/record/record.hpp"

namespace reprise::driver {

/// Adds to `past` the life's saves, and those faults of the life that stay active in later lives. A
/// save is certain if at least one rank saw it end well and was_lied_to(life) is false.
void add_life(const LifeRecord& life, Past& past);

/// True if a fault made the store report success for work that was not done, or write wrong bytes.
/// The saves of the life may then be damaged.
bool was_lied_to(const LifeRecord& life);

}  // namespace reprise::driver
