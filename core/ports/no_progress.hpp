#pragma once

#include "reprise/inspect.hpp"

namespace reprise {

/// Ignores progress reports.
class NoProgress final : public Progress {
 public:
  void advance(std::string_view /*what*/, std::uint64_t /*done*/,
               std::uint64_t /*total*/) override {}
};

}  // namespace reprise
