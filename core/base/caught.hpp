#pragma once
// Turns whatever was caught into an Error, so that no exception passes unnoticed.

#include "reprise/error.hpp"

namespace reprise {

/// Returns an Error as it is, and any other exception as INTERNAL with its words.
Error error_from(const std::exception& caught);

}  // namespace reprise
