#pragma once
// Writes a scenario as text, and adds results to a file that a person wrote.

#include <string>

#include "driver/language/scenario.hpp"

namespace reprise::driver {

/// Returns text that parses to this scenario again.
std::string to_yaml(const Scenario& scenario);
/// Returns the file's text with this `recorded:` block, which replaces any older one. Nothing else
/// changes.
std::string with_record(const std::string& text, const Recorded& recorded);

}  // namespace reprise::driver
