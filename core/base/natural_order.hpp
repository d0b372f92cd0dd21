#pragma once
// Sorts names that contain numbers in the order that people expect.

#include <string_view>

namespace reprise {

/// True if `a` comes before `b`. Compares runs of digits as numbers, so "layers.2" comes before
/// "layers.10". Names that differ only in leading zeros count as equal.
bool in_natural_order(std::string_view a, std::string_view b);

}  // namespace reprise
