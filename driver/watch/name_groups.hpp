#pragma once
// Names of what a rank holds, and lists of them for people.

#include <string>
#include <string_view>
#include <vector>

namespace reprise::driver {

/// Returns the kind that a name begins with, such as "param" or "rng".
std::string kind_of(std::string_view name);

/// Returns names as a short text: those of one kind together, at most three of each, the others
/// counted, such as "ema.decay, ema.shadow.0, ema.shadow.1 and 22 more".
std::string names_text(const std::vector<std::string>& names);

}  // namespace reprise::driver
