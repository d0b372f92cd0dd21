#pragma once
// The border that no exception crosses.

#include <cstdint>
#include <exception>

#include "reprise/error.hpp"

namespace reprise::c {

/// Keeps an error for rp_last_error() of this thread, and returns its number.
std::int32_t keep(const std::exception& caught) noexcept;
/// The same for something that is no std::exception.
std::int32_t keep_unknown() noexcept;

/// Runs a call. Returns 0, or the number of the error that it threw.
template <class Call>
std::int32_t guarded(const Call& call) noexcept {
  try {
    call();
    return 0;
  } catch (const std::exception& caught) {
    return keep(caught);
  } catch (...) {
    return keep_unknown();
  }
}

}  // namespace reprise::c
