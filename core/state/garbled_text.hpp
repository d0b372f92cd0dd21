#pragma once
// Finds texts that are not UTF-8. A pickle can't hold them, so a checkpoint with such a text could
// be written and never be read.

#include <string_view>

#include "core/state/state_dict.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// Throws UNSUPPORTED if a text anywhere in the value is not UTF-8. The message names the path to
/// that text, and calls the value `what`.
void require_utf8(const Value& value, std::string_view what);

/// Throws UNSUPPORTED if a key, or a text in an object or in the common state, is not UTF-8.
void require_utf8(const StateDict& state);

}  // namespace reprise
