#pragma once
// Progress of long work that nobody watches.

#include "core/ports/trace.hpp"

namespace reprise::driver {

struct Unwatched final : Progress {
  void advance(std::string_view /*what*/, std::uint64_t /*done*/,
               std::uint64_t /*total*/) override {}
};

}  // namespace reprise::driver
