#pragma once
// What is written into a scenario file that people wrote.

#include <string>

#include "scenarios/driver/scenario.hpp"

namespace reprise::driver {

/// The file's text with this `recorded:` block in place of any that it had; all else stays as it
/// is.
std::string with_record(const std::string& text, const Recorded& recorded);

}  // namespace reprise::driver
