#pragma once
// Numbers of errors in the C interface. They are independent of the enumerators of Code.

#include <cstdint>
#include <optional>

#include "reprise/error.hpp"

namespace reprise::c {

/// Returns RP_INTERNAL for a code that only the harness uses.
std::int32_t number_of(Code code);
/// Returns nothing for 0 and for a number that no code has.
std::optional<Code> code_numbered(std::int32_t number);

}  // namespace reprise::c
