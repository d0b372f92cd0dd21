#pragma once

#include "reprise/inspect.hpp"

namespace reprise {

/// Progress of long work that nobody watches.
class NoProgress final : public Progress {
 public:
  void advance(std::string_view /*what*/, std::uint64_t /*done*/,
               std::uint64_t /*total*/) override {}
};

}  // namespace reprise
