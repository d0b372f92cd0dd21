#pragma once
// Edits a scenario file that a person wrote.

#include <string>

#include "driver/language/scenario.hpp"

namespace reprise::driver {

/// Returns the file's text with this `recorded:` block, which replaces an older one. Nothing else
/// changes.
std::string with_record(const std::string& text, const Recorded& recorded);

}  // namespace reprise::driver
