#pragma once
// Converts any caught exception to an Error, so that no exception is lost.

#include "reprise/error.hpp"

namespace reprise {

/// Returns an Error unchanged, and any other exception as INTERNAL with its message.
Error error_from(const std::exception& caught);

}  // namespace reprise
